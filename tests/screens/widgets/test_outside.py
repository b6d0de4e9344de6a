"""The user's own pager and editor."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from backend.errors import GymError
from screens.widgets.outside import editor_command, opening, pager_command


@pytest.mark.parametrize(("value", "words"), [("less -S", ["less", "-S"]), ("'my pager' -x", ["my pager", "-x"])])
def test_the_users_own_pager(monkeypatch: pytest.MonkeyPatch, value: str, words: list[str]) -> None:
    monkeypatch.setenv("PAGER", value)
    assert pager_command() == words


def test_pagers_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "'half")
    with pytest.raises(GymError, match="cannot be understood"):
        pager_command()
    monkeypatch.delenv("PAGER")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(GymError, match="no pager"):
        pager_command()


def test_the_editor_is_the_visual_one_then_the_plain_one_then_a_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "code --wait")
    monkeypatch.setenv("EDITOR", "ed")
    assert editor_command() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", "")
    assert editor_command() == ["ed"]
    monkeypatch.delenv("EDITOR")
    monkeypatch.setattr(shutil, "which", lambda name: name if name == "vi" else None)
    assert editor_command() == ["vi"]
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(GymError, match="no editor"):
        editor_command()


def test_a_line_is_given_to_those_that_take_one() -> None:
    path = Path("a b.yaml")
    assert opening(["/usr/bin/vim", "-R"], path, 14) == ["/usr/bin/vim", "-R", "+14", "a b.yaml"]
    assert opening(["code"], path, 14) == ["code", "a b.yaml"]
    assert opening(["less"], path) == ["less", "a b.yaml"]
