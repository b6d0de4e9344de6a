"""The entries of a server's `datasets` list: which fields they have, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backend.config.schema import DATASET_TYPES, LICENSES, MISSING, one_of

_IDENTIFIERS = {
    "gitlab_identifier": ("dataset_name", "version", "artifact_fpath"),
    "huggingface_identifier": ("repo_id",),
}
_SOURCES = {"gitlab": _IDENTIFIERS["gitlab_identifier"], "huggingface": _IDENTIFIERS["huggingface_identifier"]}


def dataset_problems(entry: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with one entry, as path below the entry and message; unknown fields are nobody's business."""
    if not isinstance(entry, dict):
        yield (), "must be a mapping with name, type and jsonl_fpath"
        return
    kind = entry.get("type")
    required = ["name", "type", "jsonl_fpath"]
    if kind == "benchmark":
        required.append("prepare_script")
    elif kind in ("train", "validation"):
        required.append("license")
    for field in required:
        value = entry.get(field)
        if value is None:
            yield (field,), "is missing" + (f" for type '{kind}'" if field in ("license", "prepare_script") else "")
        elif not isinstance(value, str):
            yield (field,), "must be a text"
    if isinstance(kind, str) and not _open(kind) and kind not in DATASET_TYPES:
        yield ("type",), one_of(DATASET_TYPES)
    yield from _number_problems(entry)
    if kind == "benchmark":
        for field in ("prompt_config", "agent"):
            if not isinstance(entry.get(field), str | None):
                yield (field,), "must be a text"
        return
    licence = entry.get("license")
    if isinstance(licence, str) and not _open(licence) and licence not in LICENSES:
        yield ("license",), one_of(LICENSES)
    yield from _source_problems(entry)


def repeats_of(entry: Any) -> int:
    """How often each row of a dataset is attempted; absent and null mean once."""
    value = entry.get("num_repeats")
    return 1 if value is None else int(value)


def _number_problems(entry: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    value = entry.get("num_repeats")
    if value is None or _open(value):
        return
    try:
        number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else 0
    except ValueError:
        number = 0
    if number < 1:
        yield ("num_repeats",), "must be a whole number of at least 1"


def _source_problems(entry: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    source = entry.get("source")
    legacy = [name for name in _IDENTIFIERS if entry.get(name) is not None]
    if source is not None and not _open(source):
        if legacy:
            yield ("source",), f"is given twice: also as {' and '.join(legacy)}"
        yield from _fields("source", source, _SOURCES.get(str(source.get("type"))) if isinstance(source, dict) else None)
    for name in legacy:
        yield from _fields(name, entry[name], _IDENTIFIERS[name])


def _fields(name: str, value: Any, required: tuple[str, ...] | None) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(value, dict):
        yield (name,), "must be a mapping"
        return
    if required is None:
        yield (name, "type"), one_of(tuple(_SOURCES))
        return
    for field in required:
        if not isinstance(value.get(field), str):
            yield (name, field), "is missing" if value.get(field) is None else "must be a text"


def _open(value: Any) -> bool:
    """Whether a value is still to be set or evaluated, so that nothing can be said about it."""
    return isinstance(value, str) and (value == MISSING or "${" in value)
