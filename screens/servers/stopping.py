"""What stopping or restarting a stack means: the words of the command, and what depends on it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from backend.errors import GymError, name_some
from backend.io.redact import MASK
from backend.servers.stack_record import StackRecord
from screens.servers.board import ServerView, Snapshot, StackView

_MOST_NAMED = 4


def stop_words(stack: StackView, snapshot: Snapshot) -> list[str]:
    """`gym <words>` stops the stack: by its name where that means only this one."""
    names = [other.record.name for other in snapshot.running]
    name = stack.record.name if names.count(stack.record.name) == 1 and stack.record.name else stack.record.id
    return ["env", "stop", name]


def start_words(record: StackRecord) -> list[str]:
    """The words that start the stack again. Raises `GymError` where its command cannot be repeated."""
    words = list(record.command[1:])
    if record.run:
        raise GymError("this stack belongs to a run and cannot be restarted alone", hint="stop it; R in Rollouts resumes the run")
    if words[:2] != ["env", "start"]:
        raise GymError("it is not known how this stack was started")
    if any(MASK in word for word in words):
        raise GymError(
            "its command holds a key, which was masked", hint="start it again where it was started: keys belong in env.yaml"
        )
    return words


def typed_command(record: StackRecord) -> str:
    """The stack's command for a shell."""
    return shlex.join(["gym", *record.command[1:]]) if record.command else ""


def config_words(record: StackRecord) -> tuple[str, ...]:
    """The flags and overrides of the stack's configuration; empty where its command has others as well."""
    return record.command[3:] if record.command[1:3] == ("env", "start") else ()


def what_stops(stack: StackView, view: ServerView | None) -> str:
    """What ends with a stack, for the question before: its servers, who calls the server in question, requests, a run."""
    servers = [each for each in stack.servers if not each.is_head]
    parts = [f"the stack {stack.title}: {_counted(len(servers), 'server')}"]
    if view is not None and view.used_by:
        parts.append(f"{view.server.name} is called by {name_some(view.used_by, _MOST_NAMED)}")
    elif links := [each for each in servers if each.server.uses]:
        parts.append("; ".join(f"{each.server.name} calls {name_some(each.server.uses, _MOST_NAMED)}" for each in links[:2]))
    busy = sum(each.sample.in_flight or 0 for each in servers if each.sample is not None)
    if busy:
        parts.append(f"{_counted(busy, 'request')} in flight")
    if stack.record.run:
        parts.append(f"the run {run_name(stack.record)} ends with it")
    return "; ".join(parts)


def what_stops_with_all(stacks: Sequence[StackView]) -> str:
    """What ends with all stacks."""
    servers = sum(not view.is_head for stack in stacks for view in stack.servers)
    named = [f"{stack.title} (the run {run_name(stack.record)})" if stack.record.run else stack.title for stack in stacks]
    return f"{_counted(len(stacks), 'stack')} with {_counted(servers, 'server')}: {name_some(named, _MOST_NAMED)}"


def run_name(record: StackRecord) -> str:
    """What a run is called: its rollouts file."""
    return f"{PurePath(record.run).name.removesuffix('_run')}.jsonl" if record.run else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
