"""Jobs: headless `gym` commands started from the workbench. They lead sessions of their own, so they outlive it and a closed terminal.

Each has a log and a small record in the state home, by which a later workbench finds it again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import backend
from backend.errors import ExitCode, GymError, Place, UsageError
from backend.io.files import write_atomically
from backend.io.json_codec import dumps, loads
from backend.io.redact import holds_key
from backend.io.result_paths import ResultPaths
from backend.servers.process_identity import process_mark
from gym_tui.private_files import private_folder

_KEPT_RECORDS = 50
_CREATION_SLACK_SECONDS = 1.0
_PROGRESS_TAIL_BYTES = 16_384
_LOG_BYTES = 256_000


@dataclass(slots=True)
class Job:
    """One command that was started. Times are seconds since the epoch."""

    name: str
    words: tuple[str, ...]
    """Without `gym`."""
    folder: Path
    """Where it runs."""
    log: Path
    pid: int
    created_at: float
    """The process' creation time: with the number, what tells it from a later process where `mark` is empty."""
    started_at: float
    output: Path | None = None
    """The rollouts file of an evaluation."""
    mark: str = ""
    """What names the process for good (`process_mark`): creation times change when somebody sets the clock."""
    code: int | None = None
    """The exit code; None while it runs, and for ever when an earlier workbench started it: only its parent is told."""
    ended_at: float | None = None
    stops: int = 0
    """How often it was asked to stop."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)
    earlier_record: float | None = field(default=None, repr=False, compare=False)
    """When the run record at `output` was last written before this job began."""
    shown: bool = field(default=False, repr=False, compare=False)
    """Whether its run was brought to the screen."""

    @property
    def running(self) -> bool:
        return self.ended_at is None

    @property
    def stopped(self) -> bool:
        """Whether it ended before its time because somebody wanted it: nothing has gone wrong."""
        return self.code in (ExitCode.STOPPED_BY_RULE, ExitCode.INTERRUPTED, ExitCode.TERMINATED)

    @property
    def command(self) -> str:
        """The command as it may be shown and copied."""
        import shlex

        return shlex.join(["gym", *self.words])

    @property
    def run_folder(self) -> Path | None:
        """The folder of its run, once this job has made it."""
        if self.output is None:
            return None
        written = _written_at(ResultPaths(self.output).run_record)
        return ResultPaths(self.output).run_folder if written is not None and written != self.earlier_record else None

    def seconds(self, now: float) -> float:
        """How long it has run."""
        return max(0.0, (now if self.ended_at is None else self.ended_at) - self.started_at)


def refuse_secrets(words: Sequence[str]) -> None:
    """Raises `UsageError` when a command line holds a key: other users of the machine can read command lines."""
    if holds_key(words):
        raise UsageError(
            "keys do not go into a command line: everybody on this machine could read it",
            hint="write it into env.yaml, for instance `policy_api_key: …`, in the folder you work in",
        )


def start_job(words: Sequence[str], folder: Path, now: float, output: Path | None = None) -> Job:
    """Start `gym <words>` in `folder`. Raises `GymError` when that is not possible, and `UsageError` for words with keys in them."""
    refuse_secrets(words)
    if not folder.is_dir():
        raise UsageError(
            f"cannot start gym in {folder}: there is no such folder", hint="name files in full, and start it from another one"
        )
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{os.urandom(3).hex()}"
    jobs = private_folder("jobs")
    log = jobs / f"{name}.log"
    earlier = _written_at(ResultPaths(output).run_record) if output is not None else None
    try:
        with open(log, "xb", opener=_private) as out:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "backend.cli", *words],
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise GymError(f"cannot start gym {' '.join(words)}: {error.strerror}", place=Place(str(log))) from error
    job = Job(
        name, tuple(words), folder, log, process.pid, _creation_time(process.pid) or now, now,
        output, process_mark(process.pid), process=process, earlier_record=earlier,
    )  # fmt: skip
    save_job(job)
    return job


def look_after(job: Job, now: float) -> bool:
    """Notice whether a running job has ended; True when it has just now."""
    if not job.running:
        return False
    if job.process is not None:
        code = job.process.poll()
        if code is None:
            return False
        job.code = code
    elif _is_alive(job):
        return False
    job.ended_at = now
    save_job(job)
    return True


def stop_job(job: Job) -> None:
    """Ask a running job to stop, as Ctrl-C would: an evaluation drains at the first time, and is cancelled at the second."""
    if job.running and _is_alive(job):
        job.stops += 1
        try:
            os.kill(job.pid, signal.SIGINT)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise GymError(f"process {job.pid} may not be stopped: {error.strerror}") from error


def save_job(job: Job) -> None:
    """Keep the record of a job; without a place for it, a later workbench will not know of the job."""
    record = {
        "name": job.name,
        "words": list(job.words),
        "folder": str(job.folder),
        "log": str(job.log),
        "pid": job.pid,
        "created_at": job.created_at,
        "mark": job.mark,
        "started_at": job.started_at,
        "output": str(job.output) if job.output else None,
        "code": job.code,
        "ended_at": job.ended_at,
    }
    try:
        write_atomically(job.log.with_suffix(".json"), dumps(record), mode=0o600)
    except GymError:
        pass


def jobs_of_earlier_workbenches() -> list[Job]:
    """Jobs that still run, oldest first. Records of ended jobs beyond the newest 50 are removed with their logs."""
    found = []
    ended = []
    for path in sorted(private_folder("jobs").glob("*.json")):
        job = _read_job(path)
        if job is not None and job.running and _is_alive(job):
            found.append(job)
        else:
            ended.append(path)
    for path in ended[:-_KEPT_RECORDS]:
        path.unlink(missing_ok=True)
        path.with_suffix(".log").unlink(missing_ok=True)
    return found


def share_done(job: Job) -> float | None:
    """How much of an evaluation is done, 0 to 1, by the last lines of its events; None when that is not known."""
    if job.run_folder is None or job.output is None:
        return None
    for line in reversed(_tail(ResultPaths(job.output).events, _PROGRESS_TAIL_BYTES)):
        if b"collection." in line:
            try:
                event = loads(line)
            except ValueError:
                continue
            if event.get("type") == "collection.progress" and event.get("total"):
                return min(1.0, float(event["finished"]) / float(event["total"]))
    return None


class LogReader:
    """Reads a log's last lines, then what is added. A line counts when it is complete, or when the job has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset: int | None = None
        self._rest = b""

    def read(self, *, to_the_end: bool = False) -> list[str]:
        """The new lines, from at most 256 kB at a time; a file that is gone has none."""
        try:
            with open(self._path, "rb") as file:
                first = self._offset is None
                if self._offset is None:
                    self._offset = max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES)
                file.seek(self._offset)
                data = file.read(_LOG_BYTES)
        except OSError:
            return []
        cut = first and self._offset > 0
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if to_the_end and self._rest and len(data) < _LOG_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2] for line in (lines[1:] if cut else lines)]


def _tail(path: Path, size: int) -> list[bytes]:
    """The complete lines among the last bytes of a file, and an unfinished last one."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - size))
            data = file.read(size)
    except OSError:
        return []
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return lines[1:] if end > size else lines


def _read_job(path: Path) -> Job | None:
    """The job that a record tells of; None when it is none."""
    try:
        value: dict[str, Any] = loads(path.read_bytes())
        return Job(
            name=str(value["name"]),
            words=tuple(map(str, value["words"])),
            folder=Path(value["folder"]),
            log=path.with_suffix(".log"),
            pid=int(value["pid"]),
            created_at=float(value["created_at"]),
            started_at=float(value["started_at"]),
            output=Path(value["output"]) if value.get("output") else None,
            mark=str(value.get("mark") or ""),
            code=value.get("code"),
            ended_at=value.get("ended_at"),
            shown=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _creation_time(pid: int) -> float | None:
    import psutil  # 30 ms, and only needed where jobs are

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _is_alive(job: Job) -> bool:
    mark = process_mark(job.pid) if job.mark else ""
    if mark:
        return mark == job.mark
    import psutil

    try:
        process = psutil.Process(job.pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - job.created_at) <= _CREATION_SLACK_SECONDS
    except (psutil.Error, ValueError, OverflowError):
        return False


def _environment() -> dict[str, str]:
    """The user's environment; the child finds this very program, whatever lies in its working folder."""
    environment = dict(os.environ)
    places = list(_import_places(environment.get("PYTHONPATH", "")))
    home = str(Path(backend.__file__).resolve().parents[1])
    if home not in places and Path(home).name != "site-packages":
        environment["PYTHONPATH"] = os.pathsep.join([home, *places])
    return environment


def _import_places(value: str) -> Iterator[str]:
    yield from (place for place in value.split(os.pathsep) if place)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _written_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime_ns / 1e9
    except OSError:
        return None
