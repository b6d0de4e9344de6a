"""Rows that bring an input of their own, which no prompt may replace.

Apart from `prompt`, because a run without a prompt need not load what describes prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.errors import GymError, Place

_MAX_NAMED = 20


class PromptConflictError(GymError, ValueError):
    """Rows bring their own input although a prompt is to make it."""


def has_own_input(row: Mapping[str, Any]) -> bool:
    """Whether a row brings an input, so that no prompt may be applied to it."""
    params = row.get("responses_create_params")
    return isinstance(params, Mapping) and bool(params.get("input"))


def prompt_conflict(rows: Sequence[int], *, place: Place | None = None) -> PromptConflictError:
    """The error for rows, counted from 0, that have both an input and a prompt."""
    named = ", ".join(map(str, rows[:_MAX_NAMED])) + (", …" if len(rows) > _MAX_NAMED else "")
    return PromptConflictError(
        f"a prompt_config cannot be applied to {len(rows)} row(s) that have responses_create_params.input. Violating rows: [{named}]",
        hint="remove the input from these rows, or run without the prompt_config",
        place=place,
    )
