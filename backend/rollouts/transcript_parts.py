"""Contents, arguments and failures as text for a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.io.json_codec import dumps_indented, loads
from backend.rollouts.failures import FAILURE_PREFIX, reason_of
from backend.rollouts.rollout_record import as_mapping, as_text, plain

_LARGEST_INDENTED = 1 << 18
"""Characters of arguments that are laid out; longer ones are shown as they are."""
_WORDS = ("text", "refusal", "transcript")
_MEDIA = ("image", "audio", "video", "file")


def content_body(content: Any) -> tuple[str, bool]:
    """A content as text (a string, parts, or any other JSON), and whether part of it is a refusal. Media come as `[image …]`."""
    if content is None:
        return "", False
    if isinstance(content, str):
        return content, False
    if not isinstance(content, list):
        content = [content]
    refused = any(as_mapping(part).get("type") == "refusal" for part in content)
    return "\n".join(map(_part_text, content)), refused


def arguments_text(arguments: Any) -> tuple[str, bool]:
    """The arguments of a call for reading, and whether they are JSON: laid out when they are."""
    if not isinstance(arguments, str):
        return ("", False) if arguments is None else (indented(arguments), True)
    if len(arguments) > _LARGEST_INDENTED:
        return arguments, False
    try:
        value = loads(arguments)
    except ValueError:
        return arguments, False
    return (indented(value), True) if isinstance(value, dict | list) else (arguments, False)


def indented(value: Any) -> str:
    """A value as JSON of several lines."""
    try:
        return dumps_indented(value).decode()
    except ValueError:  # nested beyond what can be written
        return plain(value)


def failure_body(record: Mapping[str, Any]) -> str:
    """What a failed attempt's record says: the reason, then each of its failure fields, the answer's body last."""
    lines = [reason] if (reason := reason_of(record)) else []
    fields = {key.removeprefix(FAILURE_PREFIX): value for key, value in record.items() if key.startswith(FAILURE_PREFIX)}
    body = fields.pop("response_body", None)
    fields.pop("class", None)
    lines += [f"{name.replace('_', ' ')}: {plain(value)}" for name, value in fields.items() if value is not None]
    if body:
        lines += ["", plain(body)]
    return "\n".join(lines)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return indented(part)
    for key in _WORDS:
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = as_text(part.get("type"))
    medium = next((name for name in _MEDIA if name in kind), None)
    return f"[{medium}{_media_facts(part)}]" if medium else indented(part)


def _media_facts(part: Mapping[str, Any]) -> str:
    """Where a picture or another medium is, without the data itself."""
    for key, value in part.items():
        if isinstance(value, dict):
            value = value.get("url") or value.get("data")
        if key in ("type", "detail", "format") or not isinstance(value, str):
            continue
        if value.startswith("data:"):
            return f" {value[5:40].partition(';')[0].partition(',')[0]}, {len(value)} characters"
        if key in ("filename", "file_id") or "://" in value[:16]:
            return f" {value[:200]}"
        return f" {key}, {len(value)} characters"
    return ""
