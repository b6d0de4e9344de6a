"""Token records on disk: one file per rollout, safe for several processes, each record durable before the call's answer leaves.

Per rollout id: `.tokens.jsonl` (the records), `.tokens.state.json` (`frozen retired incomplete snapshot_id version entry_digests
indexed_size`), `.tokens.incomplete` (a record was lost), `.tokens.intents` (calls that began, and with a minus those given up) and
`.tokens.lock`. What has been frozen takes no more records, so that a late call cannot change what was trained on.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

from backend.io.files import make_folder, write_atomically
from backend.io.json_codec import dumps, loads
from backend.servers.token_id_capture.records import TokenEntry, validate_rollout_id

_GIVEN_UP = "-"
_STATE_SUFFIX = ".tokens.state.json"


@dataclass(frozen=True, slots=True)
class TokenCaptureSnapshot:
    """The records of a rollout at the moment it was frozen; `incomplete` when one is known to be missing."""

    rollout_id: str
    entries: tuple[TokenEntry, ...]
    incomplete: bool
    snapshot_id: str
    version: int


@runtime_checkable
class TokenSink(Protocol):
    """Takes records. The same record again is no error, another one under the same id is. May also have `begin_call`."""

    async def put(self, entry: TokenEntry) -> None: ...

    async def mark_incomplete(self, rollout_id: str, model_call_id: str = "") -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class TokenSource(Protocol):
    """Gives a rollout's records out, once and for all, and forgets them when they have been used."""

    async def freeze(self, rollout_id: str) -> TokenCaptureSnapshot: ...

    async def drop(self, rollout_id: str, *, snapshot_id: str, version: int) -> bool: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class _State:
    frozen: bool = False
    retired: bool = False
    """The records were used and removed."""
    incomplete: bool = False
    snapshot_id: str | None = None
    version: int = 0
    entry_digests: dict[str, str] = field(default_factory=dict)
    indexed_size: int = 0
    """How many bytes of the file of records the digests are of."""


class TokenCaptureStore:
    """Sink and source in one folder."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def path_for(self, rollout_id: str) -> Path:
        """The file of records."""
        return self._file(rollout_id, "jsonl")

    def state_path_for(self, rollout_id: str) -> Path:
        """The file of the state."""
        return self._file(rollout_id, "state.json")

    def incomplete_path_for(self, rollout_id: str) -> Path:
        """The marker of a lost record."""
        return self._file(rollout_id, "incomplete")

    def intents_path_for(self, rollout_id: str) -> Path:
        """The file of calls that began."""
        return self._file(rollout_id, "intents")

    def lock_path_for(self, rollout_id: str) -> Path:
        """The file whose lock guards the others."""
        return self._file(rollout_id, "lock")

    async def put(self, entry: TokenEntry) -> None:
        """See `append`."""
        await asyncio.to_thread(self.append, entry)

    async def mark_incomplete(self, rollout_id: str, model_call_id: str = "") -> None:
        """Note that a record of the rollout was lost."""
        await asyncio.to_thread(self._mark_incomplete, rollout_id)

    async def begin_call(self, rollout_id: str, model_call_id: str) -> None:
        """Note that a call began: a call without a record makes the rollout incomplete, even when its server was killed."""
        await asyncio.to_thread(self._append_intent, rollout_id, model_call_id)

    async def give_up_call(self, rollout_id: str, model_call_id: str) -> None:
        """Note that a call which began gave no answer."""
        await asyncio.to_thread(self._append_intent, rollout_id, _GIVEN_UP + model_call_id)

    async def freeze(self, rollout_id: str) -> TokenCaptureSnapshot:
        """See `freeze_now`."""
        return await asyncio.to_thread(self.freeze_now, rollout_id)

    async def drop(self, rollout_id: str, *, snapshot_id: str, version: int) -> bool:
        """Forget the records of a frozen rollout; False when they are not those of that snapshot."""
        return await asyncio.to_thread(self._drop, rollout_id, snapshot_id, version)

    async def close(self) -> None:
        """Nothing is held open."""

    def append(self, entry: TokenEntry) -> None:
        """Write a record and wait for the disk. The same record again changes nothing.

        Raises RuntimeError when the rollout is frozen, and ValueError for another record under the same id (which makes it incomplete).
        """
        line = entry.model_dump_json().encode()
        digest = hashlib.sha256(line).hexdigest()
        with self._locked(entry.rollout_id):
            state = self._synced_state(entry.rollout_id)
            known = state.entry_digests.get(entry.model_call_id)
            if known == digest:
                return
            if state.frozen:
                raise RuntimeError(f"Token capture for rollout {entry.rollout_id} is already frozen")
            if known is not None:
                self._note_loss(entry.rollout_id, state)
                raise ValueError(f"call {entry.model_call_id} of rollout {entry.rollout_id} has another record already")
            state.indexed_size += _append_durably(self.path_for(entry.rollout_id), line + b"\n")
            state.entry_digests[entry.model_call_id] = digest
            state.version += 1
            self._write_state(entry.rollout_id, state)

    def freeze_now(self, rollout_id: str) -> TokenCaptureSnapshot:
        """Take no more records, and give those there are; the same snapshot every time."""
        with self._locked(rollout_id):
            state = self._synced_state(rollout_id)
            entries = self._entries(rollout_id)
            if not state.frozen:
                state.frozen, state.snapshot_id = True, uuid4().hex
                state.version += 1
                state.incomplete = state.incomplete or self._has_open_calls(rollout_id, entries)
                self._write_state(rollout_id, state)
            incomplete = state.incomplete or self.is_incomplete(rollout_id)
            return TokenCaptureSnapshot(rollout_id, tuple(entries), incomplete, state.snapshot_id or "", state.version)

    def read_entries(self, rollout_id: str) -> list[TokenEntry]:
        """The records so far."""
        with self._locked(rollout_id):
            self._synced_state(rollout_id)
            return self._entries(rollout_id)

    def is_incomplete(self, rollout_id: str) -> bool:
        """Whether a record is known to be lost."""
        return self.incomplete_path_for(rollout_id).exists()

    def rollout_ids(self) -> frozenset[str]:
        """The rollouts of which there is anything in the folder."""
        if not self.root.is_dir():
            return frozenset()
        return frozenset(before for before, mark, _ in (name.rpartition(".tokens.") for name in os.listdir(self.root)) if mark)

    def delete(self, rollout_id: str) -> None:
        """Remove what an earlier run left for this id."""
        with self._locked(rollout_id):
            for path in (*self._of_the_records(rollout_id), self.state_path_for(rollout_id)):
                path.unlink(missing_ok=True)

    def sweep_retired(self, older_than_seconds: float) -> int:
        """Remove the state of rollouts whose records were dropped longer ago than that; gives their number."""
        swept = 0
        for path in self.root.glob(f"*{_STATE_SUFFIX}"):
            rollout_id = path.name.removesuffix(_STATE_SUFFIX)
            with self._locked(rollout_id), contextlib.suppress(FileNotFoundError):
                if self._read_state(rollout_id).retired and time.time() - path.stat().st_mtime > older_than_seconds:
                    path.unlink()  # the lock stays: somebody may be waiting for it
                    swept += 1
        return swept

    def _file(self, rollout_id: str, kind: str) -> Path:
        return self.root / f"{validate_rollout_id(rollout_id)}.tokens.{kind}"

    def _of_the_records(self, rollout_id: str) -> tuple[Path, ...]:
        return self.path_for(rollout_id), self.intents_path_for(rollout_id), self.incomplete_path_for(rollout_id)

    @contextlib.contextmanager
    def _locked(self, rollout_id: str) -> Iterator[None]:
        path = self.lock_path_for(rollout_id)
        make_folder(self.root)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read_state(self, rollout_id: str) -> _State:
        try:
            value = loads(self.state_path_for(rollout_id).read_bytes())
        except FileNotFoundError:
            return _State()
        return _State(**{known.name: value[known.name] for known in fields(_State) if known.name in value})

    def _write_state(self, rollout_id: str, state: _State) -> None:
        write_atomically(self.state_path_for(rollout_id), dumps(asdict(state)))

    def _synced_state(self, rollout_id: str) -> _State:
        """The state, brought up to what the file of records holds: a writer may have been killed between the two."""
        state = self._read_state(rollout_id)
        path = self.path_for(rollout_id)
        size = path.stat().st_size if path.exists() else 0
        if size == state.indexed_size or state.retired:
            return state
        with open(path, "r+b") as file:
            file.seek(state.indexed_size)
            rest = file.read()
            complete = rest[: rest.rfind(b"\n") + 1]
            file.truncate(state.indexed_size + len(complete))
        for line in complete.splitlines():
            state.entry_digests[loads(line)["model_call_id"]] = hashlib.sha256(line).hexdigest()
            state.version += 1
        state.indexed_size += len(complete)
        if len(complete) < len(rest):
            self._note_loss(rollout_id, state)
        else:
            self._write_state(rollout_id, state)
        return state

    def _entries(self, rollout_id: str) -> list[TokenEntry]:
        path = self.path_for(rollout_id)
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [TokenEntry.model_validate_json(line) for line in lines]

    def _mark_incomplete(self, rollout_id: str) -> None:
        with self._locked(rollout_id):
            self._note_loss(rollout_id, self._read_state(rollout_id))

    def _note_loss(self, rollout_id: str, state: _State) -> None:
        self.incomplete_path_for(rollout_id).touch()
        state.incomplete = True
        self._write_state(rollout_id, state)

    def _append_intent(self, rollout_id: str, line: str) -> None:
        with self._locked(rollout_id):
            _append_durably(self.intents_path_for(rollout_id), line.encode() + b"\n")

    def _has_open_calls(self, rollout_id: str, entries: list[TokenEntry]) -> bool:
        path = self.intents_path_for(rollout_id)
        lines = path.read_text().split() if path.exists() else []
        given_up = {line.removeprefix(_GIVEN_UP) for line in lines if line.startswith(_GIVEN_UP)}
        begun = {line for line in lines if not line.startswith(_GIVEN_UP)}
        return bool(begun - given_up - {entry.model_call_id for entry in entries})

    def _drop(self, rollout_id: str, snapshot_id: str, version: int) -> bool:
        with self._locked(rollout_id):
            state = self._read_state(rollout_id)
            if not state.frozen or (state.snapshot_id, state.version) != (snapshot_id, version):
                return False
            state.retired, state.incomplete = True, False
            state.entry_digests, state.indexed_size = {}, 0
            self._write_state(rollout_id, state)
            for path in self._of_the_records(rollout_id):
                path.unlink(missing_ok=True)
            return True


def _append_durably(path: Path, data: bytes) -> int:
    """Append and wait for the disk; gives the number of bytes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return len(data)
