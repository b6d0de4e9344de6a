"""Token counts of a response, and their sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend.responses.base import SchemaModel


class NeMoGymResponseInputTokensDetails(SchemaModel):
    cached_tokens: int | None
    """None: the endpoint did not say."""


class NeMoGymResponseOutputTokensDetails(SchemaModel):
    reasoning_tokens: int | None
    """None: the endpoint did not say."""


class NeMoGymResponseUsage(SchemaModel):
    input_tokens: int
    input_tokens_details: NeMoGymResponseInputTokensDetails
    output_tokens: int
    output_tokens_details: NeMoGymResponseOutputTokensDetails
    total_tokens: int

    @classmethod
    def sum_from_list(cls, usages: Iterable[NeMoGymResponseUsage]) -> NeMoGymResponseUsage:
        """The sum of all; zeros for none. A detail that one of them does not know is unknown in the sum."""
        total: NeMoGymResponseUsage | None = None
        for usage in usages:
            total = accumulate_response_usage(total, usage)
        if total is not None:
            return total
        return cls(
            input_tokens=0,
            input_tokens_details=NeMoGymResponseInputTokensDetails(cached_tokens=0),
            output_tokens=0,
            output_tokens_details=NeMoGymResponseOutputTokensDetails(reasoning_tokens=0),
            total_tokens=0,
        )


def accumulate_response_usage(
    total: NeMoGymResponseUsage | None, additional: NeMoGymResponseUsage | None
) -> NeMoGymResponseUsage | None:
    """`total` plus `additional` as a new object; a missing one adds nothing, so a sum over turns means "at least".

    Details: null + n = null. Fields beyond the standard ones keep the values of the first usage.
    """
    if additional is None:
        return total
    if total is None:
        return additional.model_copy(deep=True)
    result = total.model_copy(deep=True)
    result.input_tokens += additional.input_tokens
    result.output_tokens += additional.output_tokens
    result.total_tokens += additional.total_tokens
    result.input_tokens_details.cached_tokens = _add(
        total.input_tokens_details.cached_tokens, additional.input_tokens_details.cached_tokens
    )
    result.output_tokens_details.reasoning_tokens = _add(
        total.output_tokens_details.reasoning_tokens, additional.output_tokens_details.reasoning_tokens
    )
    return result


def complete_usage(usage: Any) -> dict[str, Any] | None:
    """A wire usage object with the keys an endpoint left out set to unknown; None when it reports no usable counts."""
    if not isinstance(usage, dict):
        return None
    read, written, total = (usage.get(key) for key in ("input_tokens", "output_tokens", "total_tokens"))
    if not isinstance(read, int) or not isinstance(written, int):
        return None
    return {
        **usage,
        "input_tokens_details": {"cached_tokens": None} | (usage.get("input_tokens_details") or {}),
        "output_tokens_details": {"reasoning_tokens": None} | (usage.get("output_tokens_details") or {}),
        "total_tokens": total if isinstance(total, int) else read + written,
    }


def _add(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
