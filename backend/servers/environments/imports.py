"""What a server's code imports without declaring it, because NeMo Gym's own distribution brings it along."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from backend.io.roots import COMPONENT_FOLDERS

UNDECLARED = (
    "anthropic", "datasets", "mcp", "mlflow", "numpy", "openai", "pandas", "ray", "requests", "scipy", "tiktoken", "tqdm", "wandb",
)  # fmt: skip
"""Modules, each of the distribution of that name, that components take for granted; the extras of this project name their versions."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[\w.]+)[ \t]+import\b[ \t]*\(?(?P<names>[^#\n]*)|import[ \t]+(?P<modules>[^#\n;]+))",
    re.MULTILINE,
)
_MOST_FILES = 300
_CATCHES_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@cache
def absent_modules() -> frozenset[str]:
    """Those of `UNDECLARED` that this environment does not have."""
    return frozenset(name for name in UNDECLARED if find_spec(name) is None)


def undeclared_imports(files: Sequence[Path], folder: Path, roots: Sequence[Path]) -> frozenset[str]:
    """The absent modules that `files`, and the component code they import, cannot do without.

    An import that is guarded against failure, or is for type checkers, does not count. Files that cannot be read or parsed are passed
    over: starting the server will tell.
    """
    absent = absent_modules()
    if not absent:
        return frozenset()
    needed: set[str] = set()
    for text, modules in _reachable(files, folder, roots):
        if any(name.partition(".")[0] in absent for name in modules):
            needed |= _unguarded(text) & absent
    return frozenset(needed)


def imports_any(names: Iterable[str], files: Sequence[Path], folder: Path, roots: Sequence[Path]) -> bool:
    """Whether the code imports a top-level module of one of these names that is not a file or folder of `folder`."""
    outside = {name for name in names if not (folder / name).is_dir() and not (folder / f"{name}.py").is_file()}
    if not outside:
        return False
    reachable = _reachable(files, folder, roots)
    return any(module.partition(".")[0] in outside for _, modules in reachable for module in modules)


def _reachable(files: Sequence[Path], folder: Path, roots: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    """Text and imports of `files` and, through their imports, of the modules beside them and in component folders."""
    waiting = deque(files)
    seen: set[Path] = set()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.popleft()
        if path in seen:
            continue
        seen.add(path)
        text = _text(path)
        modules = _imported(text)
        yield text, modules
        for module in modules:
            places = roots if module.partition(".")[0] in COMPONENT_FOLDERS else (folder, path.parent)
            waiting.extend(_files_of(module, places))


def _files_of(module: str, places: Iterable[Path]) -> list[Path]:
    for place in places:
        base = place.joinpath(*module.split("."))
        found = [path for path in (base.with_name(f"{base.name}.py"), base / "__init__.py") if path.is_file()]
        if found:
            return found
    return []


def _imported(text: str) -> list[str]:
    """Dotted names after `import` and `from`, and both parts of `from a import b`, for b may be a module; cheap, with false hits in prose."""
    names: list[str] = []
    for match in _IMPORT.finditer(text):
        if match["modules"]:
            names.extend(piece.split()[0] for piece in match["modules"].split(",") if piece.strip())
        else:
            source = match["source"].strip(".")
            pieces = [piece.split()[0] for piece in match["names"].strip("() \\").split(",") if piece.strip(" ()\\")]
            names.extend(filter(None, [source, *(f"{source}.{piece}".strip(".") for piece in pieces)]))
    return [name for name in names if name.replace(".", "_").isidentifier()]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _unguarded(text: str) -> set[str]:
    try:
        waiting: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested more deeply than the parser follows
        return set()
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.Try) and any(_catches_missing(handler) for handler in node.handlers):
            waiting += (*node.orelse, *node.finalbody)
        else:
            children = ast.iter_child_nodes(node)
            waiting += (child for child in children if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case))
    return found


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _CATCHES_MISSING for kind in kinds)
