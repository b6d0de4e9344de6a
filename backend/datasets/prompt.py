"""Prompt templates: how a row's fields become `responses_create_params.input`.

Importable by existing code as `nemo_gym.prompt`. A template is Python's `str.format` syntax on the row's top-level fields: items,
attributes, conversions and format specs work, `{{` and `}}` stand for braces, substituted text is not expanded again. Private
attributes are refused: a row's data must not open the interpreter's internals.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend.config.yaml_source import load_plain
from backend.datasets.own_input import PromptConflictError, has_own_input, prompt_conflict
from backend.errors import GymError, Place, closest, did_you_mean
from backend.io.files import replacing
from backend.io.json_codec import dumps_ascii
from backend.io.jsonl import read_jsonl
from backend.io.roots import importable_roots, resolve_path, search_roots

__all__ = [
    "PromptConfig",
    "PromptConfigError",
    "PromptConflictError",
    "PromptFieldError",
    "PromptTemplateError",
    "apply_prompt_to_row",
    "fill_prompt",
    "has_own_input",
    "load_prompt_config",
    "materialize_prompts",
    "prompt_conflict",
    "prompt_path",
    "validate_prompt_compatibility",
]


class PromptConfigError(GymError, ValueError):
    """A prompt file is missing, or is not a mapping with a text `user` and an optional text `system`."""


class PromptTemplateError(GymError, ValueError):
    """A template is not well formed, or asks for something that templates may not use."""


class PromptFieldError(GymError, KeyError):
    """A template names a field that the row does not have."""


class PromptConfig(BaseModel):
    """The two templates of a prompt file; other keys of the file are ignored."""

    user: str
    system: str | None = None


def load_prompt_config(path: str | Path, roots: Sequence[Path] | None = None) -> PromptConfig:
    """The prompt file at `path`, looked for in the search roots, then in the roots that components can be imported from.

    A file that has not changed is read once.
    """
    file = prompt_path(path, roots)
    try:
        status = file.stat()
    except OSError as error:
        raise PromptConfigError(
            f"cannot read the prompt file {path}: {error.strerror}",
            place=Place(str(file)),
            hint="give a path below one of the search roots, or an absolute one",
        ) from None
    return _load(file, status.st_mtime_ns, status.st_size)


def prompt_path(path: str | Path, roots: Sequence[Path] | None = None) -> Path:
    """Where the prompt file `path` is read from."""
    return resolve_path(path, (*search_roots(), *importable_roots()) if roots is None else roots)


def fill_prompt(prompt_config: PromptConfig, row: Mapping[str, Any], *, place: Place | None = None) -> list[dict[str, str]]:
    """The messages for one row: the system message if the prompt has one, even an empty one, then the user message.

    Raises `PromptFieldError` (a KeyError) for a field that the row lacks and `PromptTemplateError` (a ValueError) for a template
    that cannot be filled; both say where (`place` is the row's).
    """
    messages = []
    for role, template in (("system", prompt_config.system), ("user", prompt_config.user)):
        if template is not None:
            messages.append({"role": role, "content": _fill(template, role, row, place)})
    return messages


def apply_prompt_to_row(
    row: Mapping[str, Any] | PromptConfig, prompt_config: PromptConfig | Mapping[str, Any], *, place: Place | None = None
) -> dict[str, Any]:
    """A copy of `row` whose `responses_create_params.input` is the filled prompt; its other parameters are kept.

    The two arguments may come in either order.
    """
    if isinstance(row, PromptConfig):
        row, prompt_config = prompt_config, row
    assert isinstance(prompt_config, PromptConfig) and isinstance(row, Mapping)
    params = row.get("responses_create_params")
    kept = dict(params) if isinstance(params, Mapping) else {}
    kept["input"] = fill_prompt(prompt_config, row, place=place)
    return {**row, "responses_create_params": kept}


def validate_prompt_compatibility(rows: Iterable[Mapping[str, Any]], prompt_config: PromptConfig | None = None) -> None:
    """Raise `PromptConflictError` (a ValueError) naming all rows, counted from 0, that bring an input of their own.

    That is so with any `prompt_config`.
    """
    violating = [number for number, row in enumerate(rows) if has_own_input(row)]
    if violating:
        raise prompt_conflict(violating)


def materialize_prompts(
    input_jsonl: str | Path, prompt_config: str | Path, output_jsonl: str | Path, *, roots: Sequence[Path] | None = None
) -> int:
    """Write the rows of a JSON-lines file with the prompt of the file `prompt_config` filled in, and return how many there are.

    Each written row ends with `prompt_config_used`, the prompt file's absolute path. Nothing is written unless every row can be. Raises as
    `load_prompt_config`, `fill_prompt` and `validate_prompt_compatibility` do.
    """
    places = search_roots() if roots is None else roots
    source = resolve_path(input_jsonl, places)
    prompt = load_prompt_config(prompt_config, places)
    used = str(prompt_path(prompt_config, places).resolve())
    violating: list[int] = []
    count = 0
    with replacing(Path(output_jsonl).absolute()) as output:
        for count, line in enumerate(read_jsonl(source), 1):
            if has_own_input(line.value):
                violating.append(count - 1)
            elif not violating:
                row = apply_prompt_to_row(line.value, prompt, place=Place(str(source), line.number))
                output.write(dumps_ascii({**row, "prompt_config_used": used}) + b"\n")
        if violating:
            raise prompt_conflict(violating, place=Place(str(source)))
    return count


@functools.lru_cache(maxsize=64)
def _load(file: Path, _mtime_ns: int, _size: int) -> PromptConfig:
    content = load_plain(file)
    user, system = content.get("user"), content.get("system")
    if not isinstance(user, str):
        near = closest("user", map(str, content))
        problem = "has no `user`" if "user" not in content else "needs a text as `user`"
        raise PromptConfigError(
            f"the prompt file {problem}",
            place=Place(str(file), key="user"),
            hint=f"rename `{near}` to `user`"
            if near
            else '`user` is the template of the user message, for instance "{question}"',
        )
    if system is not None and not isinstance(system, str):
        raise PromptConfigError("the prompt file needs a text as `system`", place=Place(str(file), key="system"))
    return PromptConfig(user=user, system=system)


class _RowFormatter(string.Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if isinstance(key, int):
            raise ValueError("a placeholder needs a field name, as in {question}")
        return kwargs[key]

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # `{a[__b__]}` is an item of the row's own data and harmless; `{a.__b__}` is not.
        if "._" in field_name:
            raise ValueError(f"{{{field_name}}} asks for a private attribute")
        try:
            return super().get_field(field_name, args, kwargs)
        except (KeyError, IndexError, AttributeError, TypeError):
            raise _MissingFieldError(field_name) from None


class _MissingFieldError(Exception):
    """Carries the placeholder that leads nowhere."""


_FORMATTER = _RowFormatter()


def _fill(template: str, role: str, row: Mapping[str, Any], place: Place | None) -> str:
    try:
        return _FORMATTER.vformat(template, (), row)
    except _MissingFieldError as error:
        field = str(error)
        raise PromptFieldError(
            f"the {role} template of the prompt_config needs the field '{field}', which the row does not have",
            details=[f"the row's fields: {', '.join(map(str, row)) or '(none)'}"],
            hint=did_you_mean(field, map(str, row)),
            place=place,
        ) from None
    except (ValueError, TypeError) as error:
        raise PromptTemplateError(
            f"the {role} template of the prompt_config cannot be filled: {error}",
            hint="write {{ and }} for literal braces",
            place=place,
        ) from None
