"""The words of a configuration as a list that can be edited: what `gym env resolve` takes, flag by flag and override by override."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from backend.cli.commands import COMMANDS, SEARCH_DIR, Flag, Kind
from backend.cli.parser import HelpShown, Parsed, parse
from backend.config.resolve_view import Entry as TreeEntry
from backend.config.stages import READ
from backend.errors import GymError, UsageError
from backend.io.redact import MASK, Redactor, mask_command

COMMAND = ("env", "resolve")
_FLAGS: tuple[Flag, ...] = (*next(command.flags for command in COMMANDS if command.path == COMMAND), SEARCH_DIR)
_SWITCHES = (Kind.SWITCH, Kind.LOCAL_SWITCH)
ABOUT_OUTPUT = ("--provenance", "--key", "--json", "--help", "-h", "--verbose", "-v")
"""Words that change what `gym env resolve` prints, not what it resolves."""
_YAML = (".yaml", ".yml")
_UNQUOTED = re.compile(r"[A-Za-z0-9_./@-][A-Za-z0-9_./:@-]*")
"""Values that mean the same in the grammar of overrides, without quotes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Words that belong together: a flag with its value, or an override."""

    words: tuple[str, ...]
    on: bool = True
    """Whether it counts; what is switched off stays in the list."""

    @property
    def text(self) -> str:
        """The words for a shell."""
        return shlex.join(self.words)

    @property
    def group(self) -> str:
        """Within what its place matters: the flag's name, or `override`."""
        flag = flag_of(self.words[0])
        return flag.names[0] if flag is not None else "override"


def flag_of(word: str) -> Flag | None:
    """The flag that a word names, by its beginning where only one begins so; None for other words."""
    if not word.startswith("-"):
        return None
    name = word.partition("=")[0]
    exact = [flag for flag in _FLAGS if name in flag.names]
    begun = [flag for flag in _FLAGS if name.startswith("--") and any(other.startswith(name) for other in flag.names)]
    return exact[0] if exact else begun[0] if len(begun) == 1 else None


def entries_of(words: Sequence[str]) -> tuple[Entry, ...]:
    """The words of a command line taken apart. A path of a YAML file alone is a `--config`."""
    found: list[Entry] = []
    at = 0
    while at < len(words):
        word = words[at]
        flag = flag_of(word)
        size = 2 if flag is not None and flag.kind not in _SWITCHES and "=" not in word and at + 1 < len(words) else 1
        taken = tuple(words[at : at + size])
        is_file = flag is None and word.endswith(_YAML) and "=" not in word and not word.startswith(("-", "+", "~"))
        found.append(Entry(("--config", word) if is_file else taken))
        at += size
    return tuple(found)


def words_of(entries: Sequence[Entry]) -> list[str]:
    """The words that count."""
    return [word for entry in entries if entry.on for word in entry.words]


def typed_entries(text: str) -> tuple[Entry, ...]:
    """What somebody typed as entries. Raises `UsageError` for what `gym env resolve` does not take, and for keys."""
    try:
        entries = entries_of(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{error}".lower().replace("no closing quotation", "a quotation mark is missing")) from None
    for entry in entries:
        if entry.words[0].partition("=")[0] in ABOUT_OUTPUT:
            raise UsageError(f"{entry.words[0]} only changes what is printed", hint="take it out")
        if has_secret(entry):
            raise UsageError(
                "keys do not go into a command line", hint="write it into env.yaml, for instance `policy_api_key: …`"
            )
    parsed_words(tuple(words_of(entries)))
    return entries


@lru_cache(maxsize=256)
def parsed_words(words: tuple[str, ...]) -> Parsed:
    """The words as `gym env resolve` understands them. Raises `UsageError`."""
    if any(word in ("-h", "--help") for word in words):
        raise UsageError("--help prints something and sets nothing")
    try:
        parsed = parse([*COMMAND, *words])
    except HelpShown:
        raise UsageError("these words print something and set nothing") from None
    if not isinstance(parsed, Parsed):
        raise UsageError("these words print something and set nothing")
    return parsed


def override_of(entry: TreeEntry, stage: str) -> str:
    """The beginning of an override for a key of the tree, with its value where that needs no quotes. Raises `GymError` where none can set it."""
    if stage == READ:
        raise GymError("this is what a layer sets; a key can be set in the stages after `read`")
    if entry.secret:
        raise GymError("this holds a key, which belongs in env.yaml")
    if any(isinstance(part, int) for part in entry.path):
        raise GymError("an element of a list cannot be set by itself; set the whole list")
    plain = entry.shape == "value" and entry.value is not None and _UNQUOTED.fullmatch(str(entry.value))
    value = str(entry.value).lower() if isinstance(entry.value, bool) else str(entry.value)
    return f"++{entry.key}={value if plain else ''}"


def has_secret(entry: Entry) -> bool:
    """Whether an entry holds a key, or what is left of one that was masked."""
    return mask_command(entry.words, Redactor()) != list(entry.words) or any(MASK in word for word in entry.words)


def shown_words(entries: Sequence[Entry], redactor: Redactor) -> str:
    """The words that count for a shell, masked."""
    return shlex.join(mask_command(words_of(entries), redactor))


def run_words(entries: Sequence[Entry]) -> list[str]:
    """The words that count, without keys and without what `gym eval run` does not take."""
    kept = [entry for entry in entries if not has_secret(entry) and entry.group not in ("--no-model", "--provenance", "--key")]
    return words_of(kept)


def toggled(entries: Sequence[Entry], index: int) -> tuple[Entry, ...]:
    """The entries with one switched on or off."""
    return tuple(replace(entry, on=not entry.on) if at == index else entry for at, entry in enumerate(entries))


def moved(entries: Sequence[Entry], index: int, step: int) -> tuple[Entry, ...]:
    """The entries with one put before or after the next of its group. Raises `GymError` when that would change nothing."""
    group = entries[index].group
    flag = flag_of(entries[index].words[0])
    if flag is not None and not flag.repeatable:
        raise GymError(f"the place of {group} is fixed", hint="files of --config and overrides can be moved")
    others = [at for at, entry in enumerate(entries) if entry.group == group]
    place = others.index(index) + step
    if not 0 <= place < len(others):
        what = "override" if flag is None else group
        raise GymError(f"this is the {'last' if step > 0 else 'first'} {what}; layers of other kinds keep their place")
    order = list(entries)
    order[index], order[others[place]] = order[others[place]], order[index]
    return tuple(order)


def position_after_move(entries: Sequence[Entry], index: int, step: int) -> int:
    """Where an entry is after `moved`."""
    others = [at for at, entry in enumerate(entries) if entry.group == entries[index].group]
    return others[others.index(index) + step]
