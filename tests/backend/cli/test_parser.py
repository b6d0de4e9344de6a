"""The command line's own grammar."""

from __future__ import annotations

from typing import Any

import pytest

from backend.cli.commands import COMMANDS
from backend.cli.parser import HelpShown, Parsed, ParserError, VersionAsked, parse
from backend.cli.request_building import config_request
from backend.errors import UsageError


def parsed(*words: str) -> Parsed:
    result = parse(words)
    assert isinstance(result, Parsed)
    return result


@pytest.mark.parametrize("words", [[], ["env"], ["-v"], ["--json"]])
def test_without_a_command_help_is_shown_with_code_1(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpShown) as shown:
        parse(words)
    assert shown.value.code == 1
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["eval", "run", "-h"], ["list", "--help"]])
def test_help_is_code_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpShown) as shown:
        parse(words)
    assert shown.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_version_wins_over_a_command() -> None:
    assert parse(["--version", "env", "start", "--config", "x"]) == VersionAsked(json=False)
    assert parse(["--json", "--version"]) == VersionAsked(json=True)


@pytest.mark.parametrize("words", [["--json", "list", "benchmarks"], ["list", "benchmarks", "--json"]])
def test_json_before_or_after(words: list[str]) -> None:
    assert parsed(*words).json


@pytest.mark.parametrize("words", [["-v", "list", "benchmarks"], ["list", "benchmarks", "-v"]])
def test_verbose_before_or_after(words: list[str]) -> None:
    assert parsed(*words).verbose


def test_flags_may_be_abbreviated() -> None:
    assert parsed("eval", "run", "--no-serv", "--out", "x").values == {"no_serve": True, "output": "x"}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["eval", "rum"], "invalid choice: 'rum'", "Did you mean `run`?"),
        (["evl"], "invalid choice: 'evl'", "Did you mean `eval`?"),
        (["eval", "run", "--concurency", "3"], "unrecognized arguments: --concurency", "Did you mean `--concurrency`?"),
        (["eval", "run", "--split", "benchmrk"], "invalid choice", "Did you mean `benchmark`?"),
        (["eval", "run", "--json"], "this command has no --json", None),
        (["env", "start", "stray"], "unexpected word: stray", "an override has the form +key=value"),
        (["env", "validate", __file__], "unexpected word", f"load a configuration file with --config {__file__}"),
        (["list", "benchmarks", "a", "b"], "unexpected word: b", "an override has the form +key=value"),
        (["eval", "run", "-m"], "expected one argument", None),
    ],
)
def test_mistakes(words: list[str], message: str, hint: str | None) -> None:
    with pytest.raises(ParserError) as error:
        parse(words)
    assert message in error.value.message
    assert error.value.hint == hint
    assert error.value.exit_code == 2


@pytest.mark.parametrize("order", [["+a=1", "first_steps"], ["first_steps", "+a=1"]])
def test_an_override_is_never_taken_for_a_name(order: list[str]) -> None:
    result = parsed("list", "benchmarks", *order)
    assert result.name == "first_steps"
    assert result.overrides == ("+a=1",)


def test_every_command_has_a_module_and_names_no_flag_twice() -> None:
    for command in COMMANDS:
        names = [name for flag in command.flags for name in flag.names]
        assert len(names) == len(set(names)), command.path


@pytest.mark.parametrize(
    ("flag", "value", "key", "expected"),
    [
        ("--model", "1.10", "policy_model_name", "1.10"),
        ("--model", "123456", "policy_model_name", "123456"),
        ("--model", "a,b", "policy_model_name", "a,b"),
        ("--model", "", "policy_model_name", ""),
        ("--model-api-key", "sk-'x'==", "policy_api_key", "sk-'x'=="),
        ("--model-url", "http://h:1/v1?a=b&c=d", "policy_base_url", "http://h:1/v1?a=b&c=d"),
        ("--limit", "5", "limit", 5),
        ("--temperature", "0", "responses_create_params.temperature", 0.0),
        ("--num-repeats", "4", "num_repeats", 4),
        ("--num-repeats", "{a: 4, _default: 1}", "num_repeats", {"a": 4, "_default": 1}),
    ],
)
def test_flag_values_arrive_as_typed(flag: str, value: str, key: str, expected: Any) -> None:
    request = config_request(parsed("eval", "run", flag, value), lambda text: None)
    assert [(item.key, item.value) for item in request.flag_values] == [(key, expected)]


@pytest.mark.parametrize("words", [["--limit", "x"], ["--top-p", "much"], ["--num-repeats", "some"], ["--num-repeats", "{}"]])
def test_values_that_are_no_numbers(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"invalid configuration: .* needs a"):
        config_request(parsed("eval", "run", *words), lambda text: None)


def test_config_files_come_before_selectors_whatever_the_order_typed() -> None:
    request = config_request(
        parsed(
            "env",
            "start",
            "--model-type",
            "openai_model",
            "--resources-server",
            "mcqa",
            "--config",
            "b.yaml,c.yaml",
            "--config",
            "d.yaml",
        ),
        lambda text: None,
    )
    assert [path.rpartition("/")[2] for path in request.config_paths] == [
        "b.yaml",
        "c.yaml",
        "d.yaml",
        "mcqa.yaml",
        "openai_model.yaml",
    ]


def test_the_workbench_is_a_command_without_a_group() -> None:
    parsed = parse(["tui", "lr=0.1/+x", "--screen", "viewer", "--ascii"])
    assert isinstance(parsed, Parsed)
    assert (parsed.command.path, parsed.name, parsed.overrides) == (("tui",), "lr=0.1/+x", ())
    assert parsed.values == {"screen": "viewer", "ascii": True}


def test_the_workbench_takes_one_path() -> None:
    with pytest.raises(ParserError, match="unexpected word: b"):
        parse(["tui", "a", "b"])


@pytest.mark.parametrize("words", [["env", "validate"], ["env", "status"], ["list", "models"], ["search", "models", "m"]])
@pytest.mark.parametrize("word", ["+json=true", "++json=True"])
def test_the_older_spelling_of_json(words: list[str], word: str) -> None:
    result = parsed(*words, word)
    assert result.json
    assert result.names == tuple(words[1:] if words[0] == "search" else ())


@pytest.mark.parametrize("words", [["env", "start"], ["eval", "run"], ["list", "models"], ["search", "m"]])
@pytest.mark.parametrize("word", ["+h=true", "++help=true"])
def test_the_older_spelling_of_help(words: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpShown) as shown:
        parse([*words, word])
    assert shown.value.code == 0
    assert f"{words[0]}" in capsys.readouterr().out.splitlines()[0]


def test_a_misspelt_flag_is_told_without_its_secret() -> None:
    with pytest.raises(ParserError, match=r"unrecognized arguments: --model_api_key=\*\*\*\*"):
        parse(["env", "validate", "--model_api_key=sk-c1234567"])


def test_deleted_config_paths_are_those_of_flags_too() -> None:
    for words in (["--config", "b.yaml", "~config_paths"], ["--config", "b.yaml", "~config_paths", "+config_paths=[c.yaml]"]):
        request = config_request(parsed("env", "resolve", *words), lambda text: None)
        assert (request.config_paths, request.overrides) == ((), tuple(words[3:]))
