"""`${…}`: OmegaConf evaluates them; here it is decided when, and what to say where it cannot.

OmegaConf is loaded only where a tree holds an interpolation (it costs 0.1 s).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from backend.config.errors import ConfigInterpolationError
from backend.config.findings import Findings
from backend.config.nodes import KeyPath, Node, Origin, Setting, find, node_of, parse_path, plain, walk
from backend.config.reach import MOST_LINKS, REFERENCE, Reach
from backend.config.schema import MISSING
from backend.config.unresolved import LEADS_ON, Unresolved, report_unresolved, too_far

if TYPE_CHECKING:
    from omegaconf import DictConfig

_SIMPLE = re.compile(r"^\$\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}$")
VARIABLE = re.compile(r"\$\{oc\.env:\s*'?([A-Za-z_]\w*)")
"""An environment variable that a text refers to."""
_VARIABLE = re.compile(rf"^{VARIABLE.pattern}'?\s*(?:,[^{{}}]*)?\}}$")
_RESOLVER = re.compile(
    r"^\$\{oc\.(?P<resolver>env|select):\s*(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*(?:,\s*(?P<default>[A-Za-z_/][\w./:@-]*|0|[1-9]\d*)\s*)?\}$",
    re.ASCII,
)
_CONSTANTS = {"null": None, "true": True, "false": False}
_MISSING_KEY = re.compile(r"Interpolation key '([^']*)' not found")
_MISSING_VARIABLE = re.compile(r"Environment variable '([^']*)' not found")


def is_interpolation(value: Any) -> bool:
    """Whether a value is text that OmegaConf will replace."""
    return isinstance(value, str) and "${" in value


def resolve_tree(root: Node, findings: Findings, *, as_validated: bool = False) -> None:
    """Replace every interpolation below `root` by its value, in place.

    What cannot be resolved is an error at the top level and inside server blocks, where a run would need it; elsewhere it is a
    remark and stays as written. Of a server block, a validation (`as_validated`) needs its fields and references, but not what is in
    mappings further down: that is a server's own business until it starts. A value that comes out as a mapping or a list belongs to
    the key that refers to it.
    """
    values: list[tuple[Node, Any]] = []
    wanted: list[tuple[KeyPath, Node]] = []
    reach = Reach(root)
    far: list[tuple[KeyPath, Node]] = []
    for path, node in walk(root):
        if is_interpolation(node.value):
            if reach.is_too_far(path, node):
                far.append((path, node))
                continue
            found, value = quick_value(root, node.value)
            if found:
                values.append((node, value))
            else:
                wanted.append((path, node))
    if far:
        findings.error(too_far(reach, far))
    problems: list[tuple[KeyPath, Node, Unresolved]] = []
    if wanted:
        config = _omegaconf(root, far)
        for path, node in wanted:
            try:
                values.append((node, _evaluate(config, path, node.value)))
            except Unresolved as problem:
                problems.append((path, node, problem))
    for node, value in values:
        origin = _evaluated(root, node.value)
        node.value = node_of(value, node.origin).value
        node.history = (*node.history, Setting(origin, node.value))
    report_unresolved(root, problems, findings, as_validated)


def resolve_text(root: Node, text: str) -> Any:
    """The value of a text with interpolations, seen from the top of `root`; raises ConfigInterpolationError."""
    if not is_interpolation(text):
        return text
    if Reach(root).is_too_far((), Node(text, root.history)):
        raise ConfigInterpolationError(f"cannot resolve `{text}`: it {LEADS_ON}")
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    key = "_text_"
    try:
        value = OmegaConf.create({**plain(root), key: text})[key]
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except (OmegaConfBaseException, RecursionError, ValueError) as error:
        raise ConfigInterpolationError(f"cannot resolve `{text}`: {_first_line(error)}") from None


def dereference(root: Node, path: KeyPath, node: Node) -> Node | None:
    """The mapping or list that the interpolation `node` stands for in the tree `root`, None where it stands for anything else.

    `path` is where the node is in the tree; only relative interpolations need it.
    """
    target: Node | None = node
    for _ in range(20):
        match = _SIMPLE.match(target.value) if target is not None and isinstance(target.value, str) else None
        if match is None:
            break
        target = find(root, parse_path(match[1]))
    if target is None:
        return None
    if isinstance(target.value, dict | list):
        return target
    return _dereference_any(root, path, node) if is_interpolation(target.value) else None


def quick_value(root: Node, text: str, depth: int = 0) -> tuple[bool, Any]:
    """Whether the commonest forms of interpolation apply, and their value; loading OmegaConf for them would cost 0.1 s.

    These are `${a.b}` of a scalar, `${oc.env:NAME}` and `${oc.select:key}`, the latter two with or without a plain default.
    """
    if match := _SIMPLE.match(text):
        return _scalar_at(root, match[1], depth)
    match = _RESOLVER.match(text)
    if match is None:
        return False, None
    name, default = match["name"], match["default"]
    if match["resolver"] == "env":
        if re.fullmatch(r"\w+", name) and name in os.environ:
            return True, os.environ[name]
    else:
        found, value = _scalar_at(root, name, depth)
        if found or "." in name or name in root.value:
            return found, value
    if default is None or default.lower() in ("inf", "nan"):
        return False, None
    value = _CONSTANTS.get(default.lower(), int(default) if default.isdecimal() else default)
    # A variable is always text, and so is what stands in for it.
    return True, str(value) if match["resolver"] == "env" and value is not None else value


def _scalar_at(root: Node, key: str, depth: int) -> tuple[bool, Any]:
    target = find(root, parse_path(key))
    if target is None or isinstance(target.value, dict | list) or target.value == MISSING:
        return False, None
    if is_interpolation(target.value):
        return quick_value(root, target.value, depth + 1) if depth < MOST_LINKS else (False, None)
    return True, target.value


def _evaluated(root: Node, text: str) -> Origin:
    """Where the value of an interpolation comes from: an environment variable, or the place of the first key it names."""
    variable = _VARIABLE.match(text)
    if variable and variable[1] in os.environ:
        return Origin("variable", variable[1])
    for match in REFERENCE.finditer(text):
        if target := find(root, parse_path(match[1])):
            source = target.source
            setter = "" if source.file or not source.text else f", set by {source.text}"
            return Origin("interpolation", f"{text}{setter}", source.file, source.line, source.column)
    return Origin("interpolation", text)


def _omegaconf(root: Node, unwanted: Iterable[tuple[KeyPath, Node]]) -> DictConfig:
    """The tree for OmegaConf without some texts, and without those whose `${` is no grammar: it refuses a tree with one of these."""
    from omegaconf import OmegaConf

    readable = root.copy()
    for path, _ in unwanted:
        if node := find(readable, path):
            node.value = None
    for _, node in walk(readable):
        if is_interpolation(node.value) and _grammar_error(node.value):
            node.value = None
    return OmegaConf.create(plain(readable))


def _grammar_error(text: str) -> str | None:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.create({"value": text})
    except OmegaConfBaseException as error:
        return _first_line(error)
    return None


def _evaluate(config: DictConfig, path: KeyPath, text: str) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

    if problem := _grammar_error(text):
        raise Unresolved(f"the interpolation cannot be read ({problem})", unreadable=True)
    container: Any = config
    try:
        for key in path[:-1]:
            container = container._get_node(key)
        value = container[path[-1]]
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except InterpolationToMissingValueError:
        raise Unresolved(MISSING) from None
    except (OmegaConfBaseException, RecursionError, ValueError, TypeError) as error:
        key_match, variable = _MISSING_KEY.search(str(error)), _MISSING_VARIABLE.search(str(error))
        raise Unresolved(_first_line(error), key_match[1] if key_match else None, variable[1] if variable else None) from None


def _dereference_any(root: Node, path: KeyPath, node: Node) -> Node | None:
    if Reach(root).is_too_far(path, node):
        return None
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        container: Any = OmegaConf.create(plain(root))
        for key in path[:-1]:
            container = container._get_node(key)
        target = container._get_node(path[-1])._maybe_dereference_node()
        value = OmegaConf.to_container(target) if OmegaConf.is_config(target) else None
    except (OmegaConfBaseException, RecursionError, ValueError, AttributeError):
        return None
    return node_of(value, node.origin) if isinstance(value, dict | list) else None


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "recursive interpolation detected"
    return str(error).strip().partition("\n")[0] or type(error).__name__
