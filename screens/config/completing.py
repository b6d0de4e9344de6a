"""What could stand at the end of a line: words of `gym env resolve`, known keys, component names, files; and the sides of a diff."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from backend.catalog.kinds import KINDS
from backend.catalog.listing import likely_names
from backend.config.schema import GLOBAL_KEYS
from backend.config.stages import READ, STAGES
from backend.io.roots import search_roots
from backend.rollouts.run_list import find_runs
from screens.config.words import ABOUT_OUTPUT, COMMAND, flag_of
from screens.widgets.background import Reporter
from screens.widgets.workbench import Completion

MOST = 200
MOST_RUNS = 1000
_LEAD = " ".join(COMMAND) + " "
_KINDS = {kind.flag: kind.name for kind in KINDS.values()}
CompleteCommand = Callable[[str], list[Completion]]


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to complete from."""

    keys: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """Kind and name of components."""
    runs: tuple[str, ...] = ()
    """Rollouts files of runs, as they are typed."""


def component_names(_reporter: Reporter) -> tuple[tuple[str, str], ...]:
    """Kind and name of what the folders let expect; for threads."""
    found = likely_names(_KINDS.values(), search_roots())
    return tuple((each.kind, each.name) for each in found)


def known_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Keys of a configuration and global ones, in one list."""
    return tuple(dict.fromkeys((*(key for key in keys if "[" not in key), *sorted(GLOBAL_KEYS))))


def complete_words(text: str, known: Known, command: CompleteCommand) -> list[Completion]:
    """Completions for words that are to be added."""
    found = [
        replace(each, text=each.text.removeprefix(_LEAD)) for each in command(_LEAD + text) if each.shown not in ABOUT_OUTPUT
    ]
    head, _, last = text.rpartition(" ")
    head += " " if head else ""
    before = head.split()[-1] if head.split() else ""
    flag = flag_of(before)
    if flag is not None and flag.names[0] in _KINDS:
        kind = _KINDS[flag.names[0]]
        names = [name for each, name in known.names if each == kind and name.startswith(last) and name != last]
        return [Completion(f"{head}{shlex.quote(name)} ", name, kind) for name in names[:MOST]]
    if flag is not None or last.startswith("-") or not last:
        return found
    typed = last.lstrip("+~")
    prefix = last[: len(last) - len(typed)] or "++"
    if "=" in typed:
        return found
    keys = sorted((key for key in known.keys if typed in key and key != typed), key=lambda key: (not key.startswith(typed), key))
    files = command(f"{_LEAD}--config {last}") if prefix == "++" and not last.startswith("+") else []
    found += [replace(each, text=each.text.removeprefix(f"{_LEAD}--config ")) for each in files if not head]
    shown = ((key, key.rpartition(".")[2]) for key in keys[: MOST - len(found)])
    return [*found, *(Completion(f"{head}{prefix}{key}=", f"{last}=", f"{prefix}{key}") for key, last in shown)]


def complete_side(text: str, known: Known, command: CompleteCommand) -> list[Completion]:
    """Completions for a side of a diff: a stage, a run, a file."""
    stages = [(name, title) for name, title in STAGES.items() if name != READ]
    words = [("now", "the configuration on screen"), *stages, *((run, "run") for run in known.runs)]
    found = [Completion(shlex.quote(word), word, note) for word, note in words if word.startswith(text) and word != text]
    shown = {each.shown for each in found}
    files = command(f"env diff {text}")
    return [
        *found,
        *(replace(each, text=each.text.removeprefix("env diff ").rstrip()) for each in files if each.shown not in shown),
    ]


def runs_below(root: Path, here: Path, reporter: Reporter) -> tuple[str, ...]:
    """The rollouts files of the runs below a folder, the newest first, as they are typed in `here`; for threads."""
    found = []
    for run in find_runs(root, go_on=lambda: not reporter.cancelled):
        found.append((run.started_at or 0.0, _from(here, run.paths.rollouts)))
        if reporter.cancelled or len(found) >= MOST_RUNS:
            break
    return tuple(path for _, path in sorted(found, reverse=True))


def _from(here: Path, path: Path) -> str:
    absolute = path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(path)
