import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backend.responses.usage import (
    NeMoGymResponseInputTokensDetails,
    NeMoGymResponseUsage,
    accumulate_response_usage,
    complete_usage,
)


def usage(read, cached, written, reasoning, **details):
    return NeMoGymResponseUsage.model_validate(
        {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached, **details},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": read + written,
        }
    )


def test_all_keys_are_required():
    with pytest.raises(ValidationError):
        NeMoGymResponseInputTokensDetails()
    with pytest.raises(ValidationError):
        NeMoGymResponseUsage(input_tokens=1, output_tokens=1, total_tokens=2)


def test_a_sum_adds_counts_keeps_unknown_unknown_and_other_details_of_the_first():
    first, second = usage(10, 4, 3, None, cache_write_tokens=7), usage(20, 6, 5, 2, cache_write_tokens=9)
    total = accumulate_response_usage(first, second)
    assert total.model_dump() == {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 7},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 38,
    }
    assert first.input_tokens == 10


def test_a_turn_without_usage_adds_nothing():
    first = usage(10, 4, 3, 1)
    assert accumulate_response_usage(None, None) is None
    assert accumulate_response_usage(first, None) == first
    copy = accumulate_response_usage(None, first)
    assert copy == first
    assert copy is not first
    assert copy.input_tokens_details is not first.input_tokens_details


def test_sum_of_a_list():
    assert NeMoGymResponseUsage.sum_from_list([usage(1, 0, 2, 0), usage(3, None, 4, 1)]).model_dump() == {
        "input_tokens": 4,
        "input_tokens_details": {"cached_tokens": None},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 10,
    }
    assert NeMoGymResponseUsage.sum_from_list([]).total_tokens == 0


counts = st.integers(0, 10**9)
usages = st.builds(usage, counts, st.none() | counts, counts, st.none() | counts)


@given(st.lists(usages, min_size=1, max_size=6), st.randoms())
def test_the_sum_does_not_depend_on_order(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert NeMoGymResponseUsage.sum_from_list(values) == NeMoGymResponseUsage.sum_from_list(shuffled)


def test_what_an_endpoint_leaves_out_becomes_unknown():
    assert complete_usage({"input_tokens": 1, "output_tokens": 2, "input_tokens_details": None}) == {
        "input_tokens": 1,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": None},
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 3,
    }
    assert complete_usage(None) is None
    assert complete_usage({"input_tokens": None, "output_tokens": 2}) is None
