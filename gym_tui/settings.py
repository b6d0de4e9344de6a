"""What the workbench is started with: flags before the user's files before defaults.

The files are in the configuration home: `keys.toml` (`[keys]`, ids of the key table to keys) and `workbench.toml` (`theme`, `ascii`, `mouse`).
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.errors import GymError, Place, did_you_mean
from backend.io.files import write_atomically
from backend.io.homes import config_home
from gym_tui.private_files import home_relative
from gym_tui.themes import DEFAULT
from screens.widgets.key_table import check_keymap

KEYS_FILE = "keys.toml"
SETTINGS_FILE = "workbench.toml"
_THEME_LINE = re.compile(r"""\s*["']?theme["']?\s*=""")


@dataclass(frozen=True, slots=True)
class Settings:
    """How one workbench is set up."""

    path: Path
    """What to show: a folder below which runs are looked for, or a run, or a file of rollouts."""
    first_screen: str = ""
    """Empty: chosen by what `path` is."""
    theme: str = DEFAULT
    ascii: bool = False
    mouse: bool = True
    keymap: dict[str, str] = field(default_factory=dict)


def read_keymap(file: Path | None = None) -> dict[str, str]:
    """The rebindings of a key file, by key id; empty when there is none. Raises `GymError` that lists all that is wrong."""
    file = config_home(KEYS_FILE) if file is None else file
    table = _read_toml(file).get("keys", {})
    if not isinstance(table, dict) or not all(isinstance(keys, str) for keys in table.values()):
        raise GymError(
            "[keys] must be a table of key ids and keys", place=Place(str(file)), hint='for instance: "app.quit" = "ctrl+x"'
        )
    flat = {str(name): keys for name, keys in table.items()}
    problems = check_keymap(flat)
    if problems:
        raise GymError(
            "the key file cannot be used",
            place=Place(str(file)),
            details=problems,
            hint="mend it or move it away; `?` in the workbench lists all ids",
        )
    return flat


def shown_key_file() -> str:
    """Where the key file is, as people write it."""
    file = config_home(KEYS_FILE)
    own = os.environ.get("GYM_TUI_HOME")
    return f"$GYM_TUI_HOME/{file.relative_to(os.path.expanduser(own))}" if own else home_relative(file)


def read_choices(file: Path | None = None) -> dict[str, Any]:
    """`theme`, `ascii` and `mouse` as far as the settings file has them. Raises `GymError` for what it cannot mean."""
    file = config_home(SETTINGS_FILE) if file is None else file
    choices = _read_toml(file)
    kinds = {"theme": str, "ascii": bool, "mouse": bool}
    for name, value in choices.items():
        if name not in kinds:
            raise GymError(f"unknown setting {name}", place=Place(str(file), key=name), hint=did_you_mean(name, list(kinds)))
        if not isinstance(value, kinds[name]):
            wanted = "a name in quotes" if kinds[name] is str else "true or false"
            raise GymError(f"{name} must be {wanted}, not {value!r}", place=Place(str(file), key=name))
    return choices


def remember_theme(theme: str, file: Path | None = None) -> None:
    """Make `theme` the one that the next workbench begins with: only its line of the settings file is changed.

    Raises `GymError` when the file cannot be written.
    """
    file = (config_home(SETTINGS_FILE) if file is None else file).resolve()  # the link that a dotfile may be stays
    line = f'theme = "{theme}"'
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise GymError(f"cannot read {file}: {error}", place=Place(str(file))) from error
    lines = text.splitlines()
    top = next((number for number, old in enumerate(lines) if old.lstrip().startswith("[")), len(lines))
    at = next((number for number, old in enumerate(lines[:top]) if _THEME_LINE.match(old)), None)
    if at is None:
        lines.insert(top, line)
    else:
        lines[at] = line
    write_atomically(file, ("\n".join(lines) + "\n").encode())


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise GymError(f"cannot read {file}: {error.strerror}", place=Place(str(file))) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GymError(f"not valid TOML: {error}", place=Place(str(file))) from None
