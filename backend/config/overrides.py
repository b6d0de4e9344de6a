"""`key=value` words of the command line: Hydra's override grammar, applied in order to an empty configuration.

`+k=v` adds a key that no earlier word set, `++k=v` sets it anyway, `k=v` changes and `~k` deletes what an earlier word set. Files do not
count: the outcome is a layer of its own, above all files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.config.errors import ConfigError, OverrideError
from backend.config.includes import CONFIG_PATHS, malformed
from backend.config.merge import merged
from backend.config.nodes import Node, Origin, Setting, child, find, node_of, parse_path, plain
from backend.config.request import FlagValue
from backend.errors import GymError, Place
from backend.io.redact import MASK, Redactor, is_secret_path, mask_command

_KEY = r"[A-Za-z_$][\w$-]*(?:\.(?:[A-Za-z_$][\w$-]*|0|[1-9]\d*))*"
_WORD = r"[A-Za-z0-9_./@+%-][A-Za-z0-9_./:@+%-]*"
_PLAIN_TOKEN = re.compile(rf"^(?P<prefix>\+{{0,2}})(?P<key>{_KEY})=(?P<value>{_WORD}|\[(?:{_WORD}(?:, ?{_WORD})*)?\])$", re.ASCII)
_INTEGER = re.compile(r"^[+-]?(?:0|[1-9](?:_?\d)*)$", re.ASCII)
_DIGITS = r"(?:0|[1-9](?:_?\d)*)"
_POINT = rf"(?:{_DIGITS}\.|{_DIGITS}?\.\d(?:_?\d)*)"
_FLOAT = re.compile(rf"^[+-]?(?:{_POINT}|(?:{_DIGITS}|{_POINT})[eE][+-]?\d(?:_?\d)*|[Ii][Nn][Ff]|[Nn][Aa][Nn])$", re.ASCII)
_CONSTANTS = {"null": None, "true": True, "false": False}
_QUOTING = "quote the value for the grammar, and the whole word for the shell"
_HYDRA_URL = re.compile(r"\s*See https?://\S+.*", re.DOTALL)


@dataclass(slots=True)
class OverrideLayer:
    """What flags and words set."""

    root: Node
    config_paths: list[tuple[Any, Origin]] = field(default_factory=list)
    """Additions to `config_paths`, in order; a word that replaces the list leaves the key in `root` instead."""
    hydra: dict[str, Any] = field(default_factory=dict)
    """Settings of Hydra itself by their full key, for instance `hydra.run.dir`; they never reach the configuration."""
    words: list[tuple[Origin, Node]] = field(default_factory=list)
    """Each flag and word by itself, in the order applied; a deletion sets nothing."""


@dataclass(frozen=True, slots=True)
class _Override:
    prefix: str
    key: str
    value: Any
    has_value: bool
    token: str


def build_layer(
    flag_values: Sequence[FlagValue], tokens: Sequence[str], report: Callable[[GymError, str], None] | None = None
) -> OverrideLayer:
    """The layer of the command line: flags first, then the words in the order typed.

    Raises the error of a word that cannot be applied, or tells it to `report` with the key and goes on without that word.
    """
    layer = OverrideLayer(Node({}, ()))
    for flag in flag_values:
        origin = Origin("flag", flag.flag)
        _set(layer.root, flag.key, node_of(flag.value, origin), flag.flag)
        layer.words.append((origin, _alone(flag.key, node_of(flag.value, origin))))
    for token in tokens:
        try:
            _apply(layer, parse_token(token))
        except ConfigError as error:
            if report is None:
                raise
            report(error, token.lstrip("+~").partition("=")[0])
    return layer


def parse_token(token: str) -> _Override:
    """One word, its value typed by the grammar."""
    match = _PLAIN_TOKEN.match(token)
    if match:
        return _Override(match["prefix"], match["key"], _plain_value(match["value"]), True, token)
    return _parse_with_hydra(token)


def shown_token(token: str) -> str:
    """The word as it may be shown: the values of keys that name secrets are masked, in its mappings too."""
    return mask_command([token], Redactor())[0]


def _plain_value(text: str) -> Any:
    if text.startswith("["):
        return [_plain_value(item.strip()) for item in text[1:-1].split(",")] if text != "[]" else []
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text


def _parse_with_hydra(token: str) -> _Override:
    # 0.17 s to import, and needed only for quotes, braces, functions and interpolations.
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    shown = shown_token(token)
    if "=" not in token and not token.startswith("~"):
        raise _error(
            f"'{shown}' is not an override: there is no `=` (missing EQUAL)", shown, "write key=value, +key=value or ++key=value"
        )
    try:
        parsed = OverridesParser.create().parse_override(token)
        if parsed.is_sweep_override():
            raise _error(
                f"Ambiguous value for '{parsed.key_or_group}': a bare comma means several values",
                shown,
                _QUOTING,
                _quoted(shown),
            )
        value = parsed.value()
    except HydraException as error:
        # The grammar quotes what it stumbled over, which may be a piece of what is masked.
        reason = _HYDRA_URL.sub("", str(error)).strip() if shown == token else ""
        reason = reason or "the value is not in the grammar of overrides"
        raise _error(f"cannot read '{shown}': {reason}", shown, _QUOTING, _quoted(shown)) from None
    hydras_own = parsed.key_or_group.startswith("hydra/")
    if parsed.package is not None or ("/" in parsed.key_or_group and not hydras_own):
        raise _error(f"'{shown}' selects a config group; there are none here", shown, "use --config to load a file")
    prefix = "~" if parsed.is_delete() else "++" if parsed.is_force_add() else "+" if parsed.is_add() else ""
    return _Override(prefix, parsed.key_or_group, value, "=" in token, token)


def _apply(layer: OverrideLayer, override: _Override) -> None:
    key, value, token = override.key, override.value, shown_token(override.token)
    origin = Origin("override", token)
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        layer.hydra[key] = value
        return
    if key == CONFIG_PATHS and _applied_to_paths(layer, override, origin):
        return
    present = find(layer.root, parse_path(key))
    if override.prefix == "~":
        _delete(layer.root, override, present)
        layer.words.append((origin, Node({}, ())))
        return
    if override.prefix == "" and present is None:
        raise _error(
            f"Could not override '{key}': no earlier word sets it",
            token,
            f"use +{token}, or ++{token} to set it in any case",
            f"++{token}",
        )
    if override.prefix == "+" and present is not None and present.value is not None and not isinstance(value, dict | list):
        raise _error(
            f"'{key}' is set twice: {present.source} and {token}",
            token,
            f"use ++{token.lstrip('+')} to set it in any case",
            f"++{token.lstrip('+')}",
        )
    _set(layer.root, key, node_of(value, origin), token)
    layer.words.append((origin, _alone(key, node_of(value, origin))))


def _applied_to_paths(layer: OverrideLayer, override: _Override, origin: Origin) -> bool:
    """Add to `config_paths`, or take back what earlier words added; False for what concerns the key as any other."""
    value = override.value
    if override.prefix == "~" and layer.config_paths and CONFIG_PATHS not in layer.root.value:
        if override.value is not None and override.value != [text for text, _ in layer.config_paths]:
            return False
        layer.config_paths.clear()
        layer.words.append((origin, Node({}, ())))
        return True
    if override.prefix != "+" or (value is None and not layer.config_paths):
        return False
    items = value if isinstance(value, list) else [value]
    if not isinstance(value, list) and not (isinstance(value, str) and "${" in value):
        raise malformed(value, origin.place())
    layer.config_paths.extend((item, origin) for item in items)
    layer.words.append((origin, _alone(CONFIG_PATHS, node_of(items, origin))))
    return True


def _alone(key: str, node: Node) -> Node:
    """The tree that holds nothing but this key."""
    for name in reversed(parse_path(key)):
        value = {name: node}
        node = Node(value, (Setting(node.origin, value),))
    return node


def _set(root: Node, key: str, node: Node, token: str) -> None:
    *parents, last = parse_path(key)
    current = root
    for name in parents:
        step = child(current, name)
        if step is None or not isinstance(step.value, dict | list):
            step = Node({}, (Setting(node.origin, {}),))
            _put(current, name, step, token)
        current = step
    present = child(current, last)
    if present is None:
        _put(current, last, node, token)
    elif isinstance(present.value, dict) and isinstance(node.value, dict):
        _put(current, last, merged(present, node), token)
    elif (
        isinstance(present.value, dict | list)
        and isinstance(node.value, dict | list)
        and type(present.value) is not type(node.value)
    ):
        raise _error(f"'{key}' is a mapping in one override and a list in another: {present.source} and {token}", token, None)
    else:
        _put(current, last, Node(node.value, (*present.history, *node.history)), token)


def _put(container: Node, key: str, node: Node, token: str) -> None:
    if isinstance(container.value, dict):
        container.value[key] = node
        return
    index = int(key) if key.isdigit() else -1
    if not 0 <= index < len(container.value):
        raise _error(f"'{key}' is no position in the list that {container.source} sets", token, None)
    container.value[index] = node


def _delete(root: Node, override: _Override, present: Node | None) -> None:
    key = override.key
    if present is None or present.value is None:
        raise _error(
            f"cannot delete '{key}': no earlier word sets it",
            shown_token(override.token),
            f"keys of files stay; set ++{key}=null, or use _delete_key in a file",
            f"++{key}=null",
        )
    if override.value is not None and override.value != plain(present):
        shown = Redactor().tree({key: override.value})[key] if not is_secret_path(parse_path(key)) else MASK
        raise _error(f"cannot delete '{key}': its value is not {shown!r}", shown_token(override.token), None)
    *parents, last = parse_path(key)
    container = find(root, tuple(parents))
    if container is not None and isinstance(container.value, dict):
        del container.value[last]
    elif container is not None:
        del container.value[int(last)]


def _error(message: str, token: str, hint: str | None, fix: str | None = None) -> OverrideError:
    return OverrideError(message, place=Place(key=token) if token not in message else None, hint=hint, fix=fix)


def _quoted(token: str) -> str | None:
    """The word with its value quoted for the grammar, and the whole quoted for the shell."""
    key, equals, value = token.partition("=")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return shlex.quote(f'{key}="{escaped}"') if equals else None
