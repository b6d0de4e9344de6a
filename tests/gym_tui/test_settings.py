"""Flags before files before defaults; wrong files are named with what is wrong; only the line of the theme is ever changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.homes import config_home
from gym_tui.settings import read_choices, read_keymap, remember_theme, shown_key_file


def test_without_files_there_are_no_choices(tmp_path: Path) -> None:
    assert read_choices(tmp_path / "none.toml") == {}
    assert read_keymap(tmp_path / "none.toml") == {}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("theme = 3", "theme must be a name in quotes, not 3"),
        ('ascii = "yes"', "ascii must be true or false, not 'yes'"),
        ("thme = 'x'", "unknown setting thme"),
        ("theme = ", "not valid TOML"),
    ],
)
def test_wrong_settings_name_the_file(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "workbench.toml"
    file.write_text(content)
    with pytest.raises(GymError) as error:
        read_choices(file)
    assert says in str(error.value) and str(file) in str(error.value)


def test_wrong_keys_are_all_listed(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('[keys]\n"app.quitt" = "x"\n"app.help" = "q"\n')
    with pytest.raises(GymError) as error:
        read_keymap(file)
    assert "unknown key id app.quitt" in str(error.value) and "key q would mean both" in str(error.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'theme = "nord"\n'),
        ("# mine\nascii = true\n", '# mine\nascii = true\ntheme = "nord"\n'),
        ('theme = "x"  # old\nmouse = false\n', 'theme = "nord"\nmouse = false\n'),
        ("ascii = true\n[other]\ntheme = 'no'\n", "ascii = true\ntheme = \"nord\"\n[other]\ntheme = 'no'\n"),
    ],
)
def test_only_the_line_of_the_theme_changes(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "workbench.toml"
    if before:
        file.write_text(before)
    remember_theme("nord", file)
    assert file.read_text() == after


def test_a_link_to_the_settings_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("mouse = false\n")
    (tmp_path / "workbench.toml").symlink_to(real)
    remember_theme("nord", tmp_path / "workbench.toml")
    assert (tmp_path / "workbench.toml").is_symlink()
    assert real.read_text() == 'mouse = false\ntheme = "nord"\n'


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GymError):
        remember_theme("nord", tmp_path / "file" / "workbench.toml")


def test_where_the_key_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_key_file() == "$GYM_TUI_HOME/config/keys.toml"
    monkeypatch.delenv("GYM_TUI_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert shown_key_file() == "~/.config/gym-tui/keys.toml"
    assert config_home("keys.toml") == Path("/home/somebody/.config/gym-tui/keys.toml")
