"""Completion for the command line: what could stand at the end of a text. Pure, but for the names of files, folders and components.

It knows the command tree only as data, so a new command or flag is completed as soon as it exists.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from backend.catalog.kinds import ENVIRONMENT, KINDS, WORKLOADS
from backend.catalog.listing import likely_names
from backend.cli.commands import COMMANDS, GROUPS, SEARCH_DIR, Command, Flag, Kind
from backend.config.schema import DOMAINS
from backend.io.roots import search_roots
from screens.widgets.workbench import Completion

MOST = 200
"""Completions that are looked up at most."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A command of the workbench's own."""

    name: str
    takes: str
    """What it takes, for people; empty when nothing."""
    help: str


VERBS = (
    Verb("open", "PATH", "show a folder of runs, a run, or a file of rollouts"),
    Verb("screen", "NAME", "go to a screen"),
    Verb("theme", "NAME", "choose colours"),
    Verb("keys", "", "all keys"),
    Verb("help", "[WORD]", "all keys, or those about a word"),
    Verb("write", "[FILE]", "write what is on screen to a text file"),
    Verb("picture", "[FILE]", "write what is on screen to an SVG file"),
    Verb("ascii", "on|off", "draw with ASCII characters only, or not"),
    Verb("quit", "", "leave; runs go on"),
)
_PATH_VERBS = ("open", "write", "picture")
_PATH_METAVARS = ("FILE", "PATH", "DIR")
_KIND_OF_FLAG = {kind.flag: kind.name for kind in KINDS.values()}
_KINDS_OF_LISTING: dict[tuple[str, ...], tuple[str, ...]] = {
    ("list", kind.plural): WORKLOADS if kind.name == ENVIRONMENT else (kind.name,) for kind in KINDS.values()
}


def completions(text: str, *, screens: Sequence[str], themes: Sequence[str], folder: Path) -> list[Completion]:
    """What `text` could become at its end, the likeliest first."""
    head, last = _split(text)
    words = _words(head)
    lead = words[:1] == ["gym"]
    found = _candidates(words[1:] if lead else words, last, screens, themes, folder, own_verbs=not lead)
    fitting = [(word, note) for word, note in found if word.startswith(last) and word != last]
    return [Completion(head + (word if word.endswith(os.sep) else f"{word} "), word, note) for word, note in fitting[:MOST]]


def _candidates(
    words: Sequence[str], last: str, screens: Sequence[str], themes: Sequence[str], folder: Path, *, own_verbs: bool
) -> Iterator[tuple[str, str]]:
    if not words:
        if own_verbs:
            yield from ((verb.name, f"{verb.takes}  {verb.help}".strip()) for verb in VERBS)
        yield from GROUPS.items()
        yield from (
            (command.path[0], command.summary) for command in COMMANDS if len(command.path) == 1 and command.path != ("tui",)
        )
        return
    if own_verbs and words[0] in {verb.name for verb in VERBS}:
        if len(words) == 1:
            yield from _for_verb(words[0], last, screens, themes, folder)
        return
    command = next((command for command in COMMANDS if tuple(words[: len(command.path)]) == command.path), None)
    if command is None:
        if len(words) == 1:
            yield from ((each.path[1], each.summary) for each in COMMANDS if each.path[0] == words[0] and len(each.path) > 1)
        return
    yield from _for_command(command, words, last, folder)


def _for_verb(verb: str, last: str, screens: Sequence[str], themes: Sequence[str], folder: Path) -> Iterable[tuple[str, str]]:
    if verb in _PATH_VERBS:
        return paths(last, folder)
    names = {"screen": screens, "theme": themes, "ascii": ("on", "off")}.get(verb, ())
    return [(name, "") for name in names]


def _for_command(command: Command, words: Sequence[str], last: str, folder: Path) -> Iterator[tuple[str, str]]:
    flags = (*command.flags, SEARCH_DIR) if command.takes_search_dir else command.flags
    before = next((flag for flag in flags if words[-1] in flag.names), None)
    if before is not None and before.kind not in (Kind.SWITCH, Kind.LOCAL_SWITCH):
        if before.choices:
            yield from ((choice, "") for choice in before.choices)
        elif before.names[0] in _KIND_OF_FLAG:
            whole = before.kind is Kind.SELECTOR  # elsewhere the folder is meant, not one of its configurations
            names = components((_KIND_OF_FLAG[before.names[0]],), _roots(words, folder))
            yield from (each for each in names if whole or "/" not in each[0])
        elif before.names[0] == "--domain":
            yield from ((domain, "") for domain in DOMAINS)
        elif before.metavar in _PATH_METAVARS:
            yield from paths(last, folder)
        return
    if last.startswith("-"):
        yield from ((flag.names[0], flag.help) for flag in _open_flags(flags, words))
        if command.takes_json:
            yield "--json", "print JSON"
        yield "--help", "what the command takes"
        return
    for argument in command.arguments:
        yield from ((choice, "") for choice in argument.choices or ())
    if len(words) == len(command.path):
        yield from components(_KINDS_OF_LISTING.get(command.path, ()), _roots(words, folder))
    if command.arguments or command.name_metavar == "PATH":
        yield from paths(last, folder)
    if not last:
        yield from ((flag.names[0], flag.help) for flag in _open_flags(flags, words))


def _open_flags(flags: Sequence[Flag], words: Sequence[str]) -> Iterator[Flag]:
    """Flags that can still be given. Those for keys are not offered: a key does not go into a command line."""
    for flag in flags:
        given = any(name in words for name in flag.names)
        if (flag.repeatable or not given) and "--model-api-key" not in flag.names:
            yield flag


def components(kinds: Sequence[str], roots: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The names that the folders let expect, with their kinds."""
    yield from ((shlex.quote(each.name), KINDS[each.kind].title) for each in likely_names(kinds, roots))


def _roots(words: Sequence[str], folder: Path) -> tuple[Path, ...]:
    given = [word for flag, word in pairwise(words) if flag in SEARCH_DIR.names]
    return search_roots(given, folder)


def paths(last: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Files and folders that begin with `last`; hidden ones only when asked for."""
    typed = _unquoted(last)
    parent, beginning = os.path.split(typed)
    base = folder / os.path.expanduser(parent)
    try:
        with os.scandir(base) as entries:
            names = []
            for entry in entries:
                if entry.name.startswith(beginning) and (beginning.startswith(".") or not entry.name.startswith(".")):
                    names.append((entry.name, _is_folder(entry)))
                if len(names) >= MOST:
                    break
    except OSError:
        return
    for name, is_folder in sorted(names, key=lambda each: (not each[1], each[0])):
        whole = os.path.join(parent, name) + (os.sep if is_folder else "")
        yield (whole if typed == last and shlex.quote(whole) == whole else shlex.quote(whole)), ""


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _split(text: str) -> tuple[str, str]:
    """The text up to its last word, and that word as typed; blanks within quotes end no word."""
    quote, start = "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == " ":
            start = position + 1
    return text[:start], text[start:]


def _words(head: str) -> list[str]:
    try:
        return shlex.split(head)
    except ValueError:
        return head.split()


def _unquoted(word: str) -> str:
    return word.strip("'\"")
