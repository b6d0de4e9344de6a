import hashlib

import pytest
from pydantic import ValidationError

from backend.servers.token_id_capture.records import (
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    cumulative_tokens,
    extract_token_fields,
    output_items_of,
    stamp_lineage,
    token_bearer,
    validate_rollout_id,
)

TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}


def entry(**fields):
    return TokenEntry(**{"rollout_id": "0-0", "model_call_id": "a", "output_items": [], **TOKENS, **fields})


def test_the_digest_is_of_eight_bytes_each():
    assert compute_digest([]) == hashlib.sha256().hexdigest()
    assert compute_digest([1, 2**40]) == hashlib.sha256((1).to_bytes(8, "little") + (2**40).to_bytes(8, "little")).hexdigest()


def test_a_record_of_a_later_version_is_refused_and_unknown_fields_are_kept():
    assert entry(later="x").model_dump()["later"] == "x"
    with pytest.raises(ValidationError, match="schema version 2"):
        entry(schema_version=2)


def test_lineage_stamps():
    assert cumulative_tokens(entry()) == [1, 2, 3]
    root = stamp_lineage(entry(), None)
    assert (root.parent_call_id, root.cum_len, root.digest) == (None, 3, compute_digest([1, 2, 3]))
    assert root.parent_resolution is ParentResolutionStatus.ROOT
    assert stamp_lineage(entry(), "p").parent_resolution is ParentResolutionStatus.RESOLVED
    assert stamp_lineage(entry(), None, parent_resolution=ParentResolutionStatus.UNRESOLVED).parent_resolution == "unresolved"
    assert stamp_lineage(entry(), "p", cumulative=[9]).cum_len == 1


def test_tokens_are_found_in_answers_of_both_dialects():
    message = {"role": "assistant", "content": "a", **TOKENS}
    found = TOKENS | {"routed_experts": None}
    assert extract_token_fields({"choices": [{"message": message}]}) == found
    assert extract_token_fields({"output": [{"type": "reasoning"}, {"type": "message", **TOKENS}]}) == found
    assert extract_token_fields({"output": [{"type": "message"}]}) is None
    assert extract_token_fields({"output": [{"type": "message", "prompt_token_ids": [1]}]}) is None
    assert token_bearer([{"type": "message", **TOKENS}, {"type": "function_call"}])[0] == 0


def test_a_chat_answer_as_items():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = {"choices": [{"message": {"content": "a", "tool_calls": [call], **TOKENS}}]}
    assert output_items_of(answer) == [
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", **TOKENS},
    ]
    assert output_items_of({"choices": [{"message": {"content": None}}]}) == [
        {"type": "message", "role": "assistant", "content": ""}
    ]
    assert output_items_of({"choices": [{"message": {"content": None, "tool_calls": [call]}}]})[0]["type"] == "function_call"


@pytest.mark.parametrize("rollout_id", ["", "../x", "a/b", ".hidden"])
def test_ids_that_are_no_file_names_are_refused(rollout_id):
    with pytest.raises(ValueError, match="not a rollout id"):
        validate_rollout_id(rollout_id)
