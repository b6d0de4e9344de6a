"""Which top-level blocks are servers, which only look like one, and whether their references hold.

A block is a server when it has a server type key with exactly one implementation below, whose fields have the types of the tables
here. All other fields are the implementation's own business.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.config.dataset_entries import dataset_problems
from backend.config.errors import AlmostServerError, ConfigError
from backend.config.findings import Findings
from backend.config.fixes import for_field
from backend.config.interpolation import is_interpolation
from backend.config.nodes import KeyPath, Node, Origin, format_path, plain
from backend.config.schema import DOMAINS, MISSING, RESERVED_KEYS, RESOURCES, SERVER_TYPES, one_of
from backend.errors import Place

_BARE_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True, slots=True)
class ServerBlock:
    """A valid server in a tree."""

    name: str
    kind: str
    implementation: str
    node: Node
    """The implementation block."""

    @property
    def path(self) -> KeyPath:
        return (self.name, self.kind, self.implementation)


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field of a block."""

    path: KeyPath
    message: str
    node: Node
    """The node of the field, or of its nearest parent where the field is missing."""
    absence: bool = False
    """Whether the field is missing rather than wrong."""
    name_fix: str | None = None
    """Where not the value is wrong but the name before it: how to write that."""

    @property
    def origin(self) -> Origin:
        """Who wrote the field, or the block that lacks it."""
        return self.node.introduced if self.absence or self.name_fix else self.node.source

    @property
    def place(self) -> Place:
        return self.origin.place(format_path(self.path))

    def as_error(self, otherwise: str) -> ConfigError:
        """The problem by itself; `otherwise` is what can be done instead of mending it."""
        held = self.node.value if not self.absence else None
        near, fix = (None, self.name_fix) if self.name_fix else for_field(self.path, held)
        where = " -> ".join(str(key) for key in self.path)
        message = f"'{self.path[0]}' looks like a server but is not valid, it will not be started: {where}: {self.message}"
        return AlmostServerError(
            message, place=self.place, nearest=near, fix=fix, hint=f"Did you mean `{near}`?" if near else otherwise
        )

    def __str__(self) -> str:
        where = self.origin
        line = f" ({where})" if where.file or where.text else ""
        return f"{' -> '.join(str(key) for key in self.path)}: {self.message}{line}"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The servers of a tree in order, and the blocks that only look like one."""

    servers: tuple[ServerBlock, ...]
    almost: Mapping[str, tuple[FieldProblem, ...]]
    mendable: tuple[ServerBlock, ...] = ()
    """Those of `almost` that say what they are, so that the rest of them can be checked as well."""

    @property
    def meant(self) -> tuple[ServerBlock, ...]:
        """The servers, and what will be one when its fields are mended."""
        return (*self.servers, *self.mendable)


def take_inventory(root: Node) -> Inventory:
    """Find the servers and almost-servers among the top-level blocks."""
    servers: list[ServerBlock] = []
    almost: dict[str, tuple[FieldProblem, ...]] = {}
    mendable: list[ServerBlock] = []
    for key, block in _keyed_blocks(root):
        name = _shown_name(key, block)
        kind, problems = _best_kind(name, block)
        problems = (*_name_problem((name,), key, block), *problems)
        if not problems:
            servers.extend(_server_blocks(name, kind, block))
        elif has_entrypoint(block):
            almost[name] = (*almost.get(name, ()), *problems)
            mendable.extend(_server_blocks(name, kind, block))
    return Inventory(tuple(servers), almost, tuple(mendable))


def _server_blocks(name: str, kind: str, block: Node) -> Iterator[ServerBlock]:
    """The one implementation of a block, if that is what it has."""
    below = block.value[kind].value
    if isinstance(below, dict) and len(below) == 1:
        implementation, node = next(iter(below.items()))
        if isinstance(node.value, dict):
            yield ServerBlock(name, kind, _shown_name(implementation, node), node)


def blocks(root: Node) -> Iterator[tuple[str, Node]]:
    """Top-level blocks with a server type key, whether they are valid or not."""
    for key, node in _keyed_blocks(root):
        yield _shown_name(key, node), node


def _keyed_blocks(root: Node) -> Iterator[tuple[Any, Node]]:
    for key, node in root.value.items():
        if key not in RESERVED_KEYS and isinstance(node.value, dict) and any(kind in node.value for kind in SERVER_TYPES):
            yield key, node


def has_entrypoint(block: Node) -> bool:
    """Whether some implementation in a block has the key that makes it look like a server."""
    return any("entrypoint" in node.value for _, node in implementations(block) if isinstance(node.value, dict))


def implementations(block: Node) -> Iterator[tuple[KeyPath, Node]]:
    """All implementation entries of a block as (type, implementation) and node."""
    for kind in SERVER_TYPES:
        below = block.value.get(kind)
        if below is not None and isinstance(below.value, dict):
            for implementation, node in below.value.items():
                yield (kind, implementation), node


def report_almost_servers(inventory: Inventory, findings: Findings, *, tolerated: bool) -> None:
    """One finding per almost-server with a line per field; remarks instead of errors when they are tolerated."""
    for name, all_problems in inventory.almost.items():
        problems = [problem for problem in all_problems if not (problem.absence and findings.explained([name]))]
        if not problems:
            continue
        message = f"'{name}' looks like a server but is not valid, it will not be started"
        hint = "mend the fields" if tolerated else "mend the fields, or set +error_on_almost_servers=false to go on without it"
        error = AlmostServerError(
            message,
            place=problems[0].place,
            details=[f"  - {problem}" for problem in problems],
            hint=hint,
            parts=[problem.as_error(hint) for problem in problems],
        )
        if tolerated:
            findings.remark(error)
        else:
            findings.error(error)


def _best_kind(name: str, block: Node) -> tuple[str, tuple[FieldProblem, ...]]:
    """The type as which a block is valid, else the first type it has together with what is wrong."""
    present = [kind for kind in SERVER_TYPES if kind in block.value]
    results = [(kind, tuple(_problems(name, block, kind))) for kind in present]
    return next((result for result in results if not result[1]), results[0])


def _problems(name: str, block: Node, kind: str) -> Iterator[FieldProblem]:
    below = block.value[kind]
    if not isinstance(below.value, dict):
        yield FieldProblem((name, kind), "must be a mapping from one implementation to its fields", below)
        return
    if len(below.value) != 1:
        found = ", ".join(map(str, below.value)) or "none"
        yield FieldProblem((name, kind), f"must hold exactly one implementation, found {found}", below)
        return
    implementation, node = next(iter(below.value.items()))
    path = (name, kind, _shown_name(implementation, node))
    yield from _name_problem(path, implementation, node)
    if any(unicodedata.category(char) == "Cc" for char in f"{name}{implementation}"):
        # Names become file names, cookies and headers.
        yield FieldProblem(path, "must not have control characters in its names", node)
    if not isinstance(node.value, dict):
        yield FieldProblem(path, "must be a mapping of fields", node)
        return
    for field, message in _field_problems(node, kind):
        yield FieldProblem((*path, *field), message, _nearest(node, field), message.startswith("is missing"))


def _name_problem(path: KeyPath, name: Any, node: Node) -> Iterator[FieldProblem]:
    """Names are texts: references, folders and overrides can name nothing else."""
    if not isinstance(name, str):
        written = _shown_name(name, node)
        kind = f"as {str(name).lower()}" if isinstance(name, bool) else "as a number"
        message = f"a name must be a text, and YAML reads `{written}` {kind}; quote it"
        yield FieldProblem(path, message, node, name_fix=f"'{written}':")


def _shown_name(name: Any, node: Node) -> str:
    """A name as text: as it stands in its file, where it can still be read there, so that it is `no` rather than False."""
    if isinstance(name, str):
        return name
    origin = node.introduced
    if origin.file and origin.line and origin.column:
        try:
            line = Path(origin.file).read_text(encoding="utf-8-sig").split("\n")[origin.line - 1]
            if match := _BARE_NAME.match(line, origin.column - 1):
                return match[0]
        except (OSError, UnicodeDecodeError, IndexError):
            pass
    return str(name).lower() if isinstance(name, bool) else str(name)


def _field_problems(node: Node, kind: str) -> Iterator[tuple[KeyPath, str]]:
    fields = {key: plain(item) for key, item in node.value.items() if key in _CHECKS or key == "datasets"}
    if "entrypoint" not in fields:
        yield ("entrypoint",), "is missing"
    if kind == RESOURCES and "domain" not in fields:
        yield ("domain",), f"is missing. {one_of(DOMAINS)}"
    for field, value in fields.items():
        check = _CHECKS.get(field)
        if check is None or is_interpolation(value) or value == MISSING:
            continue
        if message := check(value):
            yield (field,), message
    datasets = fields.get("datasets")
    if datasets is not None and not is_interpolation(datasets):
        if not isinstance(datasets, list):
            yield ("datasets",), "must be a list"
            return
        for index, entry in enumerate(datasets):
            for field_path, message in dataset_problems(entry):
                yield ("datasets", index, *field_path), message


def _entrypoint(value: Any) -> str | None:
    if not isinstance(value, str) or not value:
        return "must be the name of a file"
    return "must be a file inside the implementation's folder, not an absolute path" if value.startswith("/") else None


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a text"


def _port(value: Any) -> str | None:
    number = as_integer(value)
    if value is None or value == "":
        return None
    if number is None:
        return "must be a whole number"
    return None if 0 <= number <= 65535 else "must be between 0 and 65535"


def _workers(value: Any) -> str | None:
    number = as_integer(value)
    return None if value is None or (number is not None and number >= 1) else "must be a whole number of at least 1"


def _domain(value: Any) -> str | None:
    return None if value in DOMAINS else one_of(DOMAINS)


_CHECKS = {"entrypoint": _entrypoint, "host": _text, "port": _port, "num_workers": _workers, "domain": _domain}


def as_integer(value: Any) -> int | None:
    """A whole number, also one written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _nearest(node: Node, field: KeyPath) -> Node:
    """The node of a field, or of its nearest parent where the field is missing."""
    current = node
    for key in field:
        value = current.value
        if (isinstance(value, dict) and key in value) or (isinstance(value, list) and isinstance(key, int) and key < len(value)):
            current = value[key]
        else:
            break
    return current
