from __future__ import annotations

import sys

import pytest

from backend.cli.library import eval as eval_commands
from backend.cli.library import general
from backend.cli.library.utils import exit_cleanly_on_config_error, fuzzy_matches, print_rich_table
from backend.config.errors import ConfigError


def test_best_matches_come_first() -> None:
    assert fuzzy_matches("mcq", ["blackjack", "my_circle_quiz", "mcqa"]) == ["mcqa", "my_circle_quiz"]
    assert fuzzy_matches("zzz", ["mcqa"]) == []


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_rich_table(["name", "size"], [["a", "1"]])
    out = capsys.readouterr().out
    assert "name" in out and "a" in out


def test_configuration_errors_end_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    @exit_cleanly_on_config_error
    def broken(fine: bool) -> str:
        if fine:
            return "fine"
        raise ConfigError("no such key")

    assert broken(True) == "fine"
    with pytest.raises(SystemExit) as caught:
        broken(fine=False)
    assert caught.value.code == 1
    assert "no such key" in capsys.readouterr().err


def test_commands_take_the_words_of_the_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["ng", "--json"])
    general.version()
    assert '"nemo_gym": "0.6.0"' in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["ng", "--no-such-flag"])
    with pytest.raises(SystemExit) as caught:
        eval_commands.collect_rollouts()
    assert caught.value.code == 2
    assert "--no-such-flag" in capsys.readouterr().err
