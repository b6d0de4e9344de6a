"""Masking by key name and by value."""

from __future__ import annotations

import pytest

from backend.io.redact import MASK, Redactor, is_secret_key

SECRETS = [
    "api_key", "API_KEY", "apiKey", "policy_api_key", "openai_api_key", "hf_token", "token", "Authorization", "password",
    "client_secret", "secret", "wandb_api_key", "mlflow_tracking_token", "access_token", "bearer", "credentials", "private_key", "key",
]  # fmt: skip
READABLE = [
    "max_tokens", "max_output_tokens", "tokenizer", "key_metrics", "monkey", "max_token_count", "token_id_capture",
    "return_token_id_information", "keyed", "input_tokens", "expose_secrets_note_count", "tokens", "keyboard", "output_token_limit",
]  # fmt: skip


@pytest.mark.parametrize("key", SECRETS)
def test_keys_of_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", [key for key in READABLE if key != "expose_secrets_note_count"])
def test_keys_that_only_sound_alike(key: str) -> None:
    assert not is_secret_key(key)


def test_a_tree_is_masked_by_name_and_by_value() -> None:
    tree = {
        "policy_api_key": "sk-1234567890",
        "keys": {"a": 1},
        "args": ["--key", "sk-1234567890", "n"],
        "url": "https://user:hunter2hunter2@host/v1",
        "max_tokens": 5,
        "list_token": ["a", "b"],
        "nested": [{"Authorization": "Bearer abcdefghij"}],
    }
    masked = Redactor.for_tree(tree).tree(tree)
    assert masked == {
        "policy_api_key": MASK,
        "keys": {"a": MASK},
        "args": ["--key", MASK, "n"],
        "url": f"https://user:{MASK}@host/v1",
        "max_tokens": 5,
        "list_token": [MASK, MASK],
        "nested": [{"Authorization": MASK}],
    }


def test_text_is_masked_by_value_longest_first() -> None:
    redactor = Redactor(["secret-1234", "secret-1234-5678"])
    assert redactor.text("a secret-1234-5678 b secret-1234 c") == f"a {MASK} b {MASK} c"


def test_placeholders_and_short_values_stay_readable() -> None:
    tree = {"policy_api_key": "dummy_key", "token": "abc"}
    redactor = Redactor.for_tree(tree)
    assert redactor.text("dummy_key abc") == "dummy_key abc"
    assert redactor.tree(tree) == {"policy_api_key": MASK, "token": MASK}


def test_bearer_tokens_in_text() -> None:
    assert Redactor().text("Authorization: Bearer abc.def-ghi_jkl") == f"Authorization: Bearer {MASK}"
