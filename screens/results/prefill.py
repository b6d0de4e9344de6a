"""Command lines made from a run's own command: the same again under another name, or on with what it has left."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.io.redact import MASK
from backend.rollouts.run_entry import RunEntry

_OUTPUT_FLAGS = ("--output", "-o")
_OUTPUT_WORD = re.compile(r"(?P<lead>--output=|\+*output_jsonl_fpath=)(?P<value>.*)", re.DOTALL)
_RESUMING = re.compile(r"--resume|--accept-changed-settings|\+*resume_from_cache=.*", re.DOTALL)
_NUMBERED = re.compile(r"(?P<stem>.*)-(?P<number>\d{1,6})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prefill:
    """A command line to be confirmed or changed, and what somebody should know before."""

    text: str
    folder: str | None = None
    """Where it is to run: relative paths in it are meant from there. None for the working directory."""
    remarks: tuple[str, ...] = ()


def run_again(run: RunEntry, taken: Callable[[str], bool]) -> Prefill:
    """The command of `run`, in the same folder, with an output that is not taken yet."""
    if run.command[1:3] != ("eval", "run"):
        return Prefill("eval run ")
    words = [word for word in run.command[1:] if not _RESUMING.fullmatch(word)]
    folder = _folder_of(run)
    cwd = Path(run.cwd) if run.cwd else Path.cwd()

    def renamed(value: str) -> str:
        path = Path(value)
        while True:
            path = _next_name(path)
            if not taken(str(cwd / path)):
                break
        return str(path if folder is not None or run.cwd is None else cwd / path)

    return _prefill(_with_output(words, renamed), run)


def go_on(run: RunEntry) -> Prefill | None:
    """The command that continues `run`; None when nothing can be continued."""
    if run.resume_command is None:
        return None
    words = list(run.resume_command[1:])
    if run.cwd is not None and _folder_of(run) is None:
        words = _with_output(words, lambda _value: str(run.paths.rollouts.absolute()))
    return _prefill(words, run)


def _folder_of(run: RunEntry) -> str | None:
    """The folder in which a run was started, when this machine has it."""
    return run.cwd if run.cwd is not None and Path(run.cwd).is_dir() else None


def typed_command(run: RunEntry) -> str:
    """The command of a run, for a shell."""
    return shlex.join(run.command)


def typed_resume_command(run: RunEntry) -> str:
    """What to type in a shell to continue a run, wherever one is; empty when nothing can be continued."""
    if run.resume_command is None:
        return ""
    command = shlex.join(run.resume_command)
    return f"cd {shlex.quote(run.cwd)} && {command}" if run.cwd else command


def _prefill(words: Sequence[str], run: RunEntry) -> Prefill:
    kept = _without_masked(words)
    remarks = []
    if len(kept) < len(words):
        remarks.append("what was masked in the command is left out: keys belong in env.yaml")
    folder = _folder_of(run)
    if run.cwd is not None and folder is None:
        remarks.append(f"the run was started in {run.cwd}, which is not there: relative paths in its command were meant from it")
    return Prefill(shlex.join(kept), folder, tuple(remarks))


def _without_masked(words: Sequence[str]) -> list[str]:
    """The words without those that hide something, and without the options that those belong to."""
    kept: list[str] = []
    for word in words:
        if MASK not in word:
            kept.append(word)
        elif not word.startswith("-") and kept and kept[-1].startswith("--") and "=" not in kept[-1]:
            kept.pop()
    return kept


def _with_output(words: Sequence[str], change: Callable[[str], str]) -> list[str]:
    changed = []
    previous = ""
    for word in words:
        match = _OUTPUT_WORD.fullmatch(word)
        if previous in _OUTPUT_FLAGS:
            changed.append(change(word))
        elif match is not None and match["value"]:
            changed.append(match["lead"] + change(match["value"]))
        else:
            changed.append(word)
        previous = word
    return changed


def _next_name(path: Path) -> Path:
    """`m.jsonl` becomes `m-2.jsonl`, and that `m-3.jsonl`."""
    match = _NUMBERED.fullmatch(path.stem)
    stem, number = (match["stem"], int(match["number"]) + 1) if match else (path.stem, 2)
    return path.with_name(f"{stem}-{number}{path.suffix}")
