"""Masking by key name and by value."""

from __future__ import annotations

import base64
import json
import string
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.io import secret_names
from backend.io.redact import (
    MASK,
    PLACEHOLDERS,
    Redactor,
    collect_secrets,
    holds_key,
    is_secret_key,
    is_secret_path,
    mask_command,
)

SECRETS = [
    "api_key", "API_KEY", "apiKey", "policy_api_key", "openai_api_key", "hf_token", "token", "Authorization", "password",
    "client_secret", "secret", "wandb_api_key", "mlflow_tracking_token", "access_token", "bearer", "credentials", "private_key", "key",
    "x-api-key", "APIKEY", "APIkey", "openaiapikey", "apikey2", "api_key_2", "API Key", "ApiToken", "HFToken", "HFTOKEN", "hftoken",
    "accessToken", "authtoken", "AWS_SECRET_ACCESS_KEY", "PRIVATEKEY", "PGPASSWORD", "db_passwd", "dbPassword", "passwords", "MYSQL_PWD",
    "bearer_token", "SECRET", "Proxy-Authorization", "X-Auth-Token", "Set-Cookie", "cookies", "api_keys", "api_tokens", "openai_key",
    "master_key", "ssh_key", "jwt", "judge_key", "policy_key", "tavily_key", "serper_key", "mistral_key", "model_key", "deepseek_key",
    "together_key", "github_key", "service_key", "user_key", "client_key", "consumer_key", "shared_key", "storage_key", "new_token",
    "last_token", "prompt_token", "show_api_key", "mask_api_key", "x-litellm-key", "X-Gateway-Key", "gateway_token", "auth_header",
    "basic_auth", "github_tokens", "bot_tokens", "judgeKey", "SERPER_KEY_2",
]  # fmt: skip
READABLE = [
    "max_tokens", "max_output_tokens", "tokenizer", "key_metrics", "monkey", "max_token_count", "token_id_capture",
    "return_token_id_information", "keyed", "input_tokens", "tokens", "keyboard", "output_token_limit", "expose_secrets", "hide_secrets",
    "request_prompt_and_generation_token_ids", "token_ids", "tokenIds", "accessTokenCount", "public_key", "sort_key", "primary-key",
    "image_token", "special_token", "time_to_first_token", "pwd", "PWD", "author", "hotkey", "max_new_tokens", "secretary", "",
    "group_key", "foreign_key", "partition_key", "cache_key", "prompt_cache_key", "metric_key", "reward_key", "answer_key",
    "final_answer_key", "question_group_key", "tool_payload_key", "artifact_key", "problem_key", "subset_key", "input_key", "output_key",
    "_delete_key", "env_key", "row_key", "label_key", "required_keys", "failures_by_key", "num_tokens", "stop_token", "eos_token",
    "pad_token", "bos_token", "token_id", "mask_token", "max_token", "abstention_token", "input_cost_per_token",
    "time_per_output_token", "num_speculative_tokens", "context_reset_tokens", "max_num_batched_tokens", "supply_prefix_token_ids",
    "save_model_call_using_vllm_tokenize_endpoint", "stop_tokens",
]  # fmt: skip
PEM_LINES = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "Mzfa9A=="]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *PEM_LINES, "-----END PRIVATE KEY-----", ""])


@pytest.mark.parametrize("key", SECRETS)
def test_keys_of_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", READABLE)
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


@pytest.mark.parametrize("written", [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", "\r\n"), PEM.replace("\n", " ")])
def test_each_line_of_a_private_key_is_a_secret(written: str) -> None:
    tree = {"signing": {"private_key": written}}
    redactor = Redactor.for_tree(tree)
    for line in PEM_LINES:
        assert redactor.text(f"  {line},") == f"  {MASK},"
    assert redactor.text("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"
    assert redactor.text("PRIVATE KEY-----") == "PRIVATE KEY-----"
    assert not any(line in redactor.text(written) for line in PEM_LINES)
    assert set(PEM_LINES) <= collect_secrets(tree)


def test_a_block_scalar_with_a_final_newline_is_found_in_a_line() -> None:
    assert Redactor(["sk-12345678\n"]).text("using sk-12345678 now") == f"using {MASK} now"


@given(st.text(st.sampled_from(string.ascii_letters + string.digits + "\n\\ '\"%é-"), min_size=8, max_size=60))
def test_no_line_of_a_secret_survives_in_any_form(secret: str) -> None:
    redactor = Redactor.for_tree({"password": secret})
    for line in secret.split("\n"):
        line = line.strip()
        if len(line) >= 8 and line.lower() not in PLACEHOLDERS:  # placeholders stay readable, by decision
            assert redactor.text(line) == MASK
            assert redactor.text(json.dumps(line)) == f'"{MASK}"'
            assert redactor.text(quote(line, safe="")) == MASK


def test_numbers_are_secrets_from_eight_digits_on() -> None:
    tree = {"api_key": 1234567890123, "pins": {"token": 1234567}, "max_tokens": 123456789, "again": [1234567890123, 7]}
    assert collect_secrets(tree) == {"1234567890123"}
    redactor = Redactor.for_tree(tree)
    assert redactor.text("id 1234567890123, 1234567, 123456789") == f"id {MASK}, 1234567, 123456789"
    assert redactor.tree(tree) == {"api_key": MASK, "pins": {"token": MASK}, "max_tokens": 123456789, "again": [MASK, 7]}
    assert collect_secrets({"key": -12345678}) == {"12345678"}
    assert Redactor().tree({"n": 10**5000, "key": 10**5000}) == {"n": 10**5000, "key": MASK}


def test_what_hides_nothing_stays_as_it_is() -> None:
    tree = {
        "policy_api_key": None,
        "hf_token": "",
        "token": True,
        "password": 0,
        "secrets": {"a": None, "b": False, "c": ["", None, True, "x", 1.5, []], "d": {}},
        "head_server": {"expose_secrets": False},
    }
    assert collect_secrets(tree) == frozenset()
    assert Redactor.for_tree(tree).tree(tree) == {
        "policy_api_key": None,
        "hf_token": "",
        "token": True,
        "password": MASK,
        "secrets": {"a": None, "b": False, "c": ["", None, True, MASK, MASK, []], "d": {}},
        "head_server": {"expose_secrets": False},
    }


def test_the_token_of_an_authorization_header_is_a_secret_without_its_scheme() -> None:
    redactor = Redactor.for_tree({"headers": {"Authorization": "Bearer abcdefgh1234"}})
    assert redactor.text("got abcdefgh1234") == f"got {MASK}"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://user:pw@host", "http://user:****@host"),
        ("at http://user:p%40ss%2Fw@host:80/v1, retry", "at http://user:****@host:80/v1, retry"),
        ("http://user:p@ss@host/x", "http://user:****@host/x"),
        ("http://me@corp.com:pw@host/x", "http://me@corp.com:****@host/x"),
        ("redis://:pw@host/0", "redis://:****@host/0"),
        ("http://a:b@h1/x,http://c:d@h2/y", "http://a:****@h1/x,http://c:****@h2/y"),
        ("http://token@host", "http://token@host"),
        ("http://host:8080/a@b", "http://host:8080/a@b"),
        ('{"url":"http://host:8080","mail":"a@b"}', '{"url":"http://host:8080","mail":"a@b"}'),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://[::1]:8080/a@b", "http://[::1]:8080/a@b"),
        ("http://user:pa/ss@host/x", "http://user:****@host/x"),
        ("http://u:a/b@h1/x, http://h2:80/c@d", "http://u:****@h1/x, http://h2:80/c@d"),
        ("GET /v1?api_key=a&n=1&access_token=b HTTP/1.1", "GET /v1?api_key=****&n=1&access_token=**** HTTP/1.1"),
        ("https://h/v1?key=AIza-1#top", "https://h/v1?key=****#top"),
        ('"https://h/?a=1&amp;API-Key=x%20y"', '"https://h/?a=1&amp;API-Key=****"'),
        ("https://h/#access_token=abc", "https://h/#access_token=****"),
        ('"a\\"?token=x\\"b"', '"a\\"?token=****\\"b"'),
        ("/v1?max_tokens=5&token_ids=1&api_key=&q=token", "/v1?max_tokens=5&token_ids=1&api_key=&q=token"),
    ],
)
def test_credentials_in_urls(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked
    assert Redactor().text(masked) == masked


def test_secrets_in_a_url_of_the_tree_are_known_encoded_and_decoded() -> None:
    redactor = Redactor.for_tree({"a": "http://u:hunter%402hunter@h", "b": "http://h/?api_key=abc%2B12345&n=longlonglong"})
    assert (
        redactor.text("hunter@2hunter hunter%402hunter abc+12345 abc%2B12345 longlonglong")
        == f"{MASK} {MASK} {MASK} {MASK} longlonglong"
    )
    basic = base64.b64encode(b"u:hunter@2hunter").decode()
    assert redactor.text(f"an endpoint that repeats Basic {basic}") == f"an endpoint that repeats Basic {MASK}"


@given(st.text(string.ascii_letters + string.digits + string.punctuation, min_size=1))
def test_any_password_is_masked_once_it_is_percent_encoded(password: str) -> None:
    assert Redactor().text(f"see http://user:{quote(password, safe='')}@host/x") == f"see http://user:{MASK}@host/x"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["gym", "eval", "run", "+n=1"], ["gym", "eval", "run", "+n=1"]),
        (["+api_key=abc"], ["+api_key=****"]),
        (["++a.b.my_token=x=y"], ["++a.b.my_token=****"]),
        (["api_key=a", "~token=b"], ["api_key=****", "~token=****"]),
        (["++secrets.a=1"], ["++secrets.a=****"]),
        (["--model-api-key", "abc", "rest"], ["--model-api-key", "****", "rest"]),
        (["--model-api-key=abc", "rest"], ["--model-api-key=****", "rest"]),
        (["--model-api-key", "+a=b"], ["--model-api-key", "****"]),
        (["--model-api", "abc", "--model-api-k=abc"], ["--model-api", "****", "--model-api-k=****"]),
        (["--model-a", "abc", "--model-api-=abc"], ["--model-a", "****", "--model-api-=****"]),
        (["--account", "me", "--private", "x"], ["--account", "me", "--private", "x"]),
        (["--model", "gpt", "--max-tokens", "5"], ["--model", "gpt", "--max-tokens", "5"]),
        (["--model-api-key"], ["--model-api-key"]),
        (["--model-api-key", "--json"], ["--model-api-key", "--json"]),
        (["--model-api-key", "", "+token=", "+b.token=null"], ["--model-api-key", "", "+token=", "+b.token=null"]),
        (["++head_server.expose_secrets=true", "+x.max_tokens=5"], ["++head_server.expose_secrets=true", "+x.max_tokens=5"]),
        (["+h={api_key: abc, n: 1}"], ["+h={api_key: ****, n: 1}"]),
        (["+h={n:1,\"token\":'a, b',m:{password:[x]}}"], ['+h={n:1,"token":****,m:{password:****}}']),
        (["+u=http://u:pw@h/?n=1&token=x"], ["+u=http://u:****@h/?n=1&token=****"]),
        (["prompt-sk-12345678"], ["prompt-****"]),
        (["a={password: hunter2}"], ["a={password: ****}"]),
        (["++m={api_key: c2VjcmV0==, n: 1}"], ["++m={api_key: ****, n: 1}"]),
        (["+x={api_key: sk-braces, 1234567"], ["+x={api_key: ****"]),
        (["+x={api_key: a}b{c, d: 1}"], ["+x={api_key: ****"]),
        (["+x={credentials: {user: u, list: [p]}, n: 1}"], ["+x={credentials: ****, n: 1}"]),
        (["+policy_api_key:sk-colon", "+my_token sk-blank"], ["+policy_api_key:****", "+my_token ****"]),
        (["--model_api_key=sk-c"], ["--model_api_key=****"]),
        (
            ["+e=[{name: A_KEY, value: s3}, {name: MODE, value: m}]"],
            ["+e=[{name: A_KEY, value: ****}, {name: MODE, value: ****}]"],
        ),
        (['+a=["--api-key","s3","n"]'], ['+a=["--api-key",****,"n"]']),
    ],
)
def test_the_command_line_is_masked_by_key_and_by_value(words: list[str], shown: list[str]) -> None:
    assert mask_command(words, Redactor(["sk-12345678"])) == shown
    assert mask_command(shown, Redactor()) == shown


KEYS = st.sampled_from(["a", "model", "api_key", "Token", "max_tokens", "n"])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_masking_a_tree_keeps_its_shape_and_masking_twice_changes_nothing(tree: Any) -> None:
    redactor = Redactor.for_tree(tree)
    masked = redactor.tree(tree)
    assert shape(masked) == shape(tree)
    assert redactor.tree(masked) == masked
    assert not any(secret in json.dumps(masked, ensure_ascii=False) for secret in collect_secrets(tree) if secret.isalnum())


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else None


@pytest.mark.parametrize("piece", ["a", "://", "://a", "://a:b/", ":", "&a", "&a=", "bearer ", "a@", "{a", " ", "?token=", "-"])
def test_the_time_for_a_long_line_is_linear(piece: str) -> None:
    redactor = Redactor([PEM, "sk-12345678"])
    line = "{://u:" + piece * (200_000 // len(piece))
    begin = time.thread_time()
    redactor.text(line)
    mask_command([line], redactor)
    assert time.thread_time() - begin < 3


def test_a_secret_that_has_become_a_key_is_masked() -> None:
    tree = {"api_key": "sk-1234567890", "users": {"sk-1234567890": 3, "https://u:pa55word@h": 1, 7: "n"}}
    assert Redactor.for_tree(tree).tree(tree) == {"api_key": MASK, "users": {MASK: 3, f"https://u:{MASK}@h": 1, 7: "n"}}


PARTS = st.sampled_from(
    ["api", "Key", "TOKEN", "tokens", "pass", "wd", "Word", "secret", "Authorization", "jwt", "pwd", "_", "-", "x", "9"]
)


@given(st.lists(st.one_of(PARTS, st.text(max_size=3)), max_size=6).map("".join))
def test_the_quick_look_at_a_name_dismisses_no_secret(key: str) -> None:
    assert is_secret_key(key) == secret_names.names_secret(key)


NAMED = {
    "secret_santa": {"resources_servers": {"token_counter": {"entrypoint": "app.py", "api_key": "sk-1234567890", "limit": "plain-text"}}},
    "agent_map": {"token_agent": "other_agent_name"},
    "num_repeats": {"token_agent": 4},
    "credentials": {"user": "somebody1", "resources": "plain-text-2"},
}  # fmt: skip


def test_the_name_of_a_server_is_no_secret_and_makes_none() -> None:
    assert collect_secrets(NAMED) == {"sk-1234567890", "somebody1", "plain-text-2"}
    masked = Redactor.for_tree(NAMED).tree(NAMED)
    assert masked["secret_santa"]["resources_servers"]["token_counter"] == {
        "entrypoint": "app.py", "api_key": MASK, "limit": "plain-text",
    }  # fmt: skip
    assert (masked["agent_map"], masked["num_repeats"]) == (NAMED["agent_map"], NAMED["num_repeats"])
    assert masked["credentials"] == {"user": MASK, "resources": MASK}


@pytest.mark.parametrize(
    ("path", "value", "secret"),
    [
        (("secret_santa", "resources_servers", "token_counter", "port"), 1, False),
        (("secret_santa", "resources_servers", "token_counter", "api_key"), 1, True),
        (("secret_santa", "resources_servers"), {}, False),
        (("secret_santa",), {"resources_servers": {}}, False),
        (("secret_santa",), {"other": {}}, True),
        (("secrets", "x"), 1, True),
        (("agent_map", "token_agent"), "a", False),
    ],
)
def test_paths(path: tuple[str, ...], value: Any, secret: bool) -> None:
    assert is_secret_path(path, value) is secret
    word = f"++{'.'.join(path)}=1234"
    if not isinstance(value, dict):
        assert mask_command([word], Redactor()) == [f"++{'.'.join(path)}={MASK}" if secret else word]


def test_names_beside_their_values() -> None:
    tree = {
        "env": [{"name": "OPENAI_API_KEY", "value": "short"}, {"name": "MODE", "value": "plain"}],
        "args": ["--api-key", "short", "--n", "4", "--token=short", "DB_PASSWORD=short", "MODE=x"],
        "bot_tokens": ["a", "b"],
        "stop_tokens": ["a", "b"],
        "frob_tokens": [1, 2],
    }
    assert Redactor().tree(tree) == {
        "env": [{"name": "OPENAI_API_KEY", "value": MASK}, {"name": "MODE", "value": "plain"}],
        "args": ["--api-key", MASK, "--n", "4", f"--token={MASK}", f"DB_PASSWORD={MASK}", "MODE=x"],
        "bot_tokens": [MASK, MASK],
        "stop_tokens": ["a", "b"],
        "frob_tokens": [1, 2],
    }
    assert collect_secrets({"env": [{"name": "A_KEY", "value": "sk-12345678"}], "args": ["--key", "sk-abcdefgh"]}) == {
        "sk-12345678",
        "sk-abcdefgh",
    }


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("host=x password=pw9 user=u", f"host=x password={MASK} user=u"),
        ("Basic dXNlcjpwYXNz", f"Basic {MASK}"),
        ("Basic requirements apply", "Basic requirements apply"),
        ("fix: ++policy_api_key=abc", f"fix: ++policy_api_key={MASK}"),
        ("hint: ++policy_api_key=<value>, +key=value", "hint: ++policy_api_key=<value>, +key=value"),
        ("sorted(rows, key=len)", "sorted(rows, key=len)"),
    ],
)
def test_secrets_by_their_form(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked
    assert Redactor().text(masked) == masked


def test_names_that_may_be_secrets_are_masked_in_place_and_their_values_nowhere_else() -> None:
    tree = {"flavor_key": "question", "columns": {"question": "text", "messages": "list"}, "judge_key": "sk-judge-0123456789"}
    redactor = Redactor.for_tree(tree)
    assert redactor.tree(tree) == {"flavor_key": MASK, "columns": {"question": "text", "messages": "list"}, "judge_key": MASK}
    assert redactor.text("a question for sk-judge-0123456789") == f"a question for {MASK}"


def test_keys_that_are_masked_alike_stay_apart() -> None:
    redactor = Redactor(["first-of-all", "second-of-all"])
    masked = redactor.tree({"first-of-all": 1, "second-of-all": 2, "plain": 3})
    assert masked == {MASK: 1, f"{MASK} (2)": 2, "plain": 3}


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("++a[0].api_key=sk-1longlong", f"++a[0].api_key={MASK}"),
        ("++srv.'b'.api_key=sk-1longlong", f"++srv.'b'.api_key={MASK}"),
        ("++a/api_key=sk-1longlong", f"++a/api_key={MASK}"),
        ("++api_key@x=sk-1longlong", f"++api_key@x={MASK}"),
        ('"++policy_api_key"=S3cretValue', f'"++policy_api_key"={MASK}'),
        ("cd /srv && OPENAI_API_KEY=S3cretValue99 python app.py", f"cd /srv && OPENAI_API_KEY={MASK}"),
        ("++srv.query_key=question", "++srv.query_key=question"),
        ("--tokenizer-key=Qwen/Qwen2", "--tokenizer-key=Qwen/Qwen2"),
    ],
)
def test_secrets_anywhere_in_a_word(word: str, shown: str) -> None:
    assert mask_command([word], Redactor()) == [shown]


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        (["eval", "run", "++srv.flavor_key=question"], False),
        (["eval", "run", "++judge_key=sk-judge-0123456789"], True),
        (["eval", "run", "--judge-key", "sk-judge-0123456789"], True),
        (["eval", "run", "++judge.api_key=anything"], True),
    ],
)
def test_a_command_line_is_refused_only_for_what_is_certain(words: list[str], holds: bool) -> None:
    assert holds_key(words) is holds
