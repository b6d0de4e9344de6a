"""YAML files as plain data, or as nodes that know their file, line and column.

One document per file, in the dialect of `yaml_loader`. An empty file is an empty mapping, a lone word a mapping from it to null.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from backend.config.errors import ConfigSyntaxError
from backend.config.nodes import Node, Origin, Setting
from backend.config.schema import MOST_FILE_BYTES
from backend.config.yaml_loader import TAG, loader_for, refuse_bombs
from backend.errors import Place

_SCALARS = (str, int, float, bool, bytes, type(None))
_SWITCHES = re.compile(r"(?i)^(?:yes|no|on|off)$")
_SEXAGESIMAL = re.compile(r"^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.\d*)?$")
_OCTAL = re.compile(r"^[-+]?0[0-7_]+$")
_SHORTENED = re.compile(r"^\d+\.\d*0$")
_LABEL_KEY = re.compile(r"(?i)(?:^|_)(?:version|revision|release|tag|id|name)$")


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed file."""

    path: Path
    root: Node
    remarks: tuple[tuple[str, Place], ...]
    """Spots where YAML makes something else of a value than its writer may think."""


def load_source(path: Path, kind: str = "file", *, shown: str | None = None) -> Source:
    """The nodes of the file at `path`, whose top level must be a mapping; origins call the file `shown`.

    Raises `ConfigSyntaxError` with file, line and column; OSError is turned into it as well. Parsed files are kept in memory
    until they change.
    """
    name = shown or str(path)
    try:
        status = path.stat()
        return _load_source(path, name, kind, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ConfigSyntaxError(f"cannot read the file: {error.strerror}", place=Place(name)) from error


@lru_cache(maxsize=512)
def _load_source(path: Path, name: str, kind: str, _mtime_ns: int, _size: int) -> Source:
    reader = _NodeReader(read_text(path, name), name, kind)
    return Source(path, reader.read(), tuple(reader.remarks))


def load_plain(path: Path) -> dict[Any, Any]:
    """The content of the file at `path` as plain data; errors as in `load_source`."""
    name = str(path)
    try:
        text = read_text(path, name)
    except OSError as error:
        raise ConfigSyntaxError(f"cannot read the file: {error.strerror}", place=Place(name)) from error
    return parse_plain(text, name)


def parse_plain(text: str, name: str) -> dict[Any, Any]:
    """As `load_plain`, for the text of a file."""
    loader = loader_for(text)
    try:
        document = loader.get_single_node()
        if document is None:
            return {}
        refuse_bombs(document)
        value = loader.construct_document(document)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _syntax_error(error, text, name) from None
    finally:
        loader.dispose()
    return _as_mapping(value, Place(name, 1, 1))


def parse_nodes(text: str, name: str, kind: str) -> Node:
    """The nodes of a text that is in no file; origins and errors call it `name`. Raises `ConfigSyntaxError`."""
    return _NodeReader(text, name, kind).read()


def read_text(path: Path, name: str) -> str:
    """The text of a file, without byte order mark; raises OSError, and ConfigSyntaxError for what is no text or far too long."""
    with path.open("rb") as file:
        data = file.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        raise ConfigSyntaxError(
            f"the file is larger than {MOST_FILE_BYTES >> 20} MB, which no configuration is",
            place=Place(name),
            hint="keep data in JSON-lines files, and name these in the configuration",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigSyntaxError("the file is not UTF-8 text", place=Place(name, line)) from None


class _NodeReader:
    """Turns the YAML nodes of one text into configuration nodes."""

    def __init__(self, text: str, name: str, kind: str) -> None:
        self.text = text
        self.name = name
        self.kind = kind
        self.remarks: list[tuple[str, Place]] = []

    def read(self) -> Node:
        self._loader = loader_for(self.text)
        try:
            document = self._loader.get_single_node()
            if document is None:
                return self._node({}, None)
            refuse_bombs(document)
            root = self._build(document, document.start_mark)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise _syntax_error(error, self.text, self.name) from None
        finally:
            self._loader.dispose()
        if isinstance(root.value, dict):
            return root
        _as_mapping(root.value, Place(self.name, 1, 1))
        return self._node({} if root.value is None else {root.value: self._node(None, document.start_mark)}, None)

    def _build(self, item: yaml.Node, mark: Any) -> Node:
        if isinstance(item, yaml.ScalarNode):
            return self._node(self._scalar(item), mark)
        if item.tag not in (f"{TAG}map", f"{TAG}seq"):
            raise yaml.constructor.ConstructorError(None, None, f"the tag {item.tag} is not supported", item.start_mark)
        return self._node(self._mapping(item) if isinstance(item, yaml.MappingNode) else self._sequence(item), mark)

    def _mapping(self, item: yaml.MappingNode) -> dict[Any, Node]:
        self._loader.refuse_duplicates(item)
        self._loader.flatten_mapping(item)
        result: dict[Any, Node] = {}
        for key_node, value_node in item.value:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word or a number", key_node.start_mark)
            if isinstance(key, bool) and _SWITCHES.match(key_node.value):
                self._remark(f"YAML reads the key `{key_node.value}` as {str(key).lower()}; quote it to keep the word", key_node)
            if isinstance(value_node, yaml.ScalarNode) and not value_node.style:
                self._remark_on_value(str(key), value_node)
            result[key] = self._build(value_node, key_node.start_mark)
        return result

    def _sequence(self, item: Any) -> list[Node]:
        for element in item.value:
            if element.tag == f"{TAG}bool" and _SWITCHES.match(element.value):
                self._remark(f"YAML reads `{element.value}` in this list as a boolean; quote it to keep the word", element)
        return [self._build(element, element.start_mark) for element in item.value]

    def _scalar(self, item: yaml.ScalarNode) -> Any:
        value = self._loader.construct_object(item)
        if not isinstance(value, _SCALARS):
            raise yaml.constructor.ConstructorError(None, None, f"the tag {item.tag} is not supported", item.start_mark)
        return value

    def _remark_on_value(self, key: str, item: yaml.ScalarNode) -> None:
        text = item.value
        number = item.tag in (f"{TAG}int", f"{TAG}float")
        shortened = _SHORTENED.match(text) and _LABEL_KEY.search(key) and text != str(float(text))
        if number and (_SEXAGESIMAL.match(text) or _OCTAL.match(text) or shortened):
            value = self._loader.construct_object(item)
            self._remark(f"YAML reads `{key}: {text}` as the number {value}; quote it to keep the text", item)

    def _remark(self, message: str, item: yaml.Node) -> None:
        self.remarks.append((message, Place(self.name, item.start_mark.line + 1, item.start_mark.column + 1)))

    def _node(self, value: Any, mark: Any) -> Node:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return Node(value, (Setting(Origin(self.kind, "", self.name, line, column), value),))


def _as_mapping(value: Any, place: Place) -> dict[Any, Any]:
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    if isinstance(value, str):
        return {value: None}
    kind = "a list" if isinstance(value, list) else "a single value"
    raise ConfigSyntaxError(
        f"the top level of a configuration file must be a mapping, this is {kind}",
        place=place,
        hint="write `key: value` lines",
    )


def _advice(problem: str, opened: Any) -> str | None:
    """What usually mends the commonest mistakes."""
    if "expected ',' or" in problem and opened is not None:
        return f"close the bracket that line {opened.line + 1} opens"
    if "mapping values are not allowed" in problem or "could not find expected ':'" in problem:
        return "quote values that hold a colon, and check the indentation"
    if "found character '\\t'" in problem or "cannot start any token" in problem:
        return "indent with spaces, and quote values that begin with a special character"
    return None


def _syntax_error(error: Exception, text: str, name: str) -> ConfigSyntaxError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "malformed"
        place = Place(name, mark.line + 1, mark.column + 1) if mark else Place(name)
        context = f" ({error.context}, line {error.context_mark.line + 1})" if error.context and error.context_mark else ""
        return ConfigSyntaxError(f"malformed YAML: {problem}{context}", place=place, hint=_advice(problem, error.context_mark))
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return ConfigSyntaxError("malformed YAML: a character that YAML does not allow", place=Place(name, line))
    if isinstance(error, RecursionError):
        return ConfigSyntaxError("values are nested too deeply", place=Place(name))
    return ConfigSyntaxError(f"malformed YAML: {error}", place=Place(name))
