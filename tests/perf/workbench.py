"""What the workbench costs: first paint, quitting, idling, a run with 500 events a second, 1.8 million events, a rollouts file of 1 GB.

The real program runs in a pseudo terminal of 120x36; what it draws is read from there.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import psutil
from measure import GYM, wall_ms

SIZE = (36, 120)
MB = 1e6


class Terminal:
    """`gym tui` in a pseudo terminal; everything it draws is kept as bytes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color", "GYM_TUI_HOME": str(folder / ".home"), "COLORTERM": "truecolor"}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [str(GYM), "tui", *words],
            cwd=folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.drawn = b""
        self.usage = psutil.Process(self.process.pid)

    def read(self, seconds: float) -> None:
        """Read what is drawn for some time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.drawn += os.read(self.master, 1 << 16)
                except OSError:
                    return

    def wait_for(self, *texts: str, seconds: float = 60) -> float:
        """Seconds from the start until one of the texts was drawn."""
        end = time.perf_counter() + seconds
        while not any(text.encode() in self.drawn for text in texts):
            if time.perf_counter() > end or self.process.poll() is not None:
                raise SystemExit(f"{texts} never came; the end of what was drawn: {self.drawn[-600:]!r}")
            self.read(0.005)
        return time.perf_counter() - self.began

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def cpu_seconds(self) -> float:
        times = self.usage.cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        return self.usage.memory_info().rss / MB

    def quit(self) -> float:
        """Press `q`; seconds until the process is gone."""
        began = time.perf_counter()
        self.press("q")
        while self.process.poll() is None and time.perf_counter() - began < 30:
            self.read(0.005)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self.master)
        return time.perf_counter() - began


def first_paint_and_quit(folder: Path, runs: int) -> None:
    base = wall_ms([sys.executable, "-c", "import argparse, json"], folder)
    imported = wall_ms([sys.executable, "-c", "import textual.app"], folder)
    paints, quits = [], []
    for _ in range(runs):
        terminal = Terminal(folder)
        paints.append(terminal.wait_for("Results"))
        terminal.read(1)
        quits.append(terminal.quit())
    print(f"python -c 'import argparse, json' {base:.0f} ms, 'import textual.app' {imported:.0f} ms")
    print(f"first paint: first {paints[0] * 1000:.0f} ms, then {min(paints[1:] or paints) * 1000:.0f} ms; budget 800, 500")
    print(f"quit: {max(quits) * 1000:.0f} ms at most; budget 500")


def idle(folder: Path, seconds: float) -> None:
    terminal = Terminal(folder)
    terminal.wait_for("Results")
    terminal.read(4)
    before = terminal.cpu_seconds()
    terminal.read(seconds)
    print(f"idle: {100 * (terminal.cpu_seconds() - before) / seconds:.2f} % of a core; budget 1")
    terminal.quit()


def _event(number: int, kind: str, **fields: object) -> bytes:
    return json.dumps({"v": 1, "seq": number, "t": time.time(), "type": kind, **fields}).encode() + b"\n"


def _rollout(number: int, task: int) -> bytes:
    shared = {"task": task, "rollout": 0, "agent": "agent"}
    finished = {
        "seconds": 1 + task % 30, "reward": float(task % 3 == 0), "failure": None, "reason": None, "http_status": None,
        "input_tokens": 100, "output_tokens": 50 + task % 200, "offset": None,
    }  # fmt: skip
    stage = {"task": task, "rollout": 0, "stage": "model call 1", "detail": "policy_model", "since": time.time()}
    return b"".join((
        _event(number, "rollout.started", **shared), _event(number + 1, "rollout.stage", **stage),
        _event(number + 2, "rollout.finished", **shared, **finished),
    ))  # fmt: skip


def _running_run(folder: Path, total: int) -> Path:
    """A run that goes on, as far as its record tells; its process is this one."""
    run = folder / "live_run"
    run.mkdir(parents=True)
    record = {
        "state": "running", "command": ["gym", "eval", "run", "--output", "live.jsonl"], "cwd": str(folder), "host": os.uname().nodename,
        "pid": os.getpid(), "started_at": time.time(), "output": str(folder / "live.jsonl"), "rollouts": total, "agents": {"agent": total},
    }  # fmt: skip
    (run / "run.json").write_text(json.dumps(record))
    with open(run / "events.ndjson", "wb") as file:
        file.write(
            _event(
                0,
                "run.planned",
                output="live.jsonl",
                inputs="rows.jsonl",
                rollouts=total,
                concurrency=64,
                agents={"agent": total},
            )
        )
        file.write(_event(1, "collection.started", total=total))
    return run / "events.ndjson"


def events_per_second(folder: Path, rate: int, seconds: float) -> None:
    events = _running_run(folder, total=int(rate * (seconds + 20)))
    stop = threading.Event()

    def write() -> None:
        task, began = 0, time.perf_counter()
        with open(events, "ab", buffering=0) as file:
            while not stop.is_set():
                due = int((time.perf_counter() - began) * rate / 3)
                if due > task:
                    file.write(b"".join(_rollout(2 + 3 * number, number) for number in range(task, due)))
                    task = due
                stop.wait(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    terminal = Terminal(folder, "--screen", "rollouts")
    terminal.wait_for("rate")
    terminal.read(4)
    before, drawn = terminal.cpu_seconds(), len(terminal.drawn)
    terminal.read(seconds)
    share = 100 * (terminal.cpu_seconds() - before) / seconds
    print(
        f"{rate} events/s: {share:.1f} % of a core, {(len(terminal.drawn) - drawn) / seconds / 1000:.1f} kB/s drawn; budget 15 %"
    )
    stop.set()
    writer.join()
    terminal.quit()


def many_events(folder: Path, count: int) -> None:
    def memory_after(total: int, name: str) -> tuple[float, float]:
        place = folder / name
        events = _running_run(place, total=total)
        with open(events, "ab") as file:
            for begin in range(0, total, 1000):
                file.write(b"".join(_rollout(2 + 3 * task, task) for task in range(begin, min(total, begin + 1000))))
        terminal = Terminal(place, "--screen", "rollouts")
        taken = terminal.wait_for(f"{total:,} / {total:,}".replace(",", " "), seconds=180)
        terminal.read(2)
        memory = terminal.memory_mb()
        terminal.quit()
        return memory, taken

    small, _ = memory_after(3000, "small")
    large, taken = memory_after(count // 3, "large")
    print(
        f"{count} events: replayed in {taken:.1f} s; memory {large:.0f} MB, {large - small:+.0f} MB against 9,000 events; budget +30"
    )


def large_file(folder: Path, rows: int) -> None:
    path = folder / "large.jsonl"
    text = "word " * 180
    with open(path, "wb") as file:
        for number in range(rows):
            record = {
                "responses_create_params": {"input": f"question {number}"}, "reward": float(number % 2), "_ng_task_index": number // 4,
                "_ng_rollout_index": number % 4, "agent_ref": {"name": "agent"},
                "response": {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]},
            }  # fmt: skip
            file.write(json.dumps(record).encode() + b"\n")
    small = folder / "small.jsonl"
    with open(path, "rb") as source:
        small.write_bytes(b"".join(source.readline() for _ in range(100)))
    print(f"a file of {rows} rows, {path.stat().st_size / 1e9:.2f} GB")
    terminal = Terminal(folder, str(small), "--screen", "viewer")
    base = terminal.wait_for("question 0")
    terminal.read(2)
    memory = terminal.memory_mb()
    terminal.quit()
    terminal = Terminal(folder, str(path), "--screen", "viewer")
    first = terminal.wait_for("question 0")
    indexed = terminal.wait_for(f"{rows:,}".replace(",", " "), seconds=120)
    terminal.read(3)
    print(f"first rows {first - base:+.2f} s against a file of 100 rows ({base:.2f} s); budget 0.2")
    print(f"indexed {indexed - first:.2f} s after the first rows; budget 2")
    print(f"memory {terminal.memory_mb():.0f} MB, {terminal.memory_mb() - memory:+.0f} MB; budget +50")
    print(f"quit {terminal.quit() * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("paint", "idle", "live", "events", "file"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=1_800_000)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    parts = {
        "paint": lambda: first_paint_and_quit(folder, 5),
        "idle": lambda: idle(folder, 10),
        "live": lambda: events_per_second(folder / "live", 500, 15),
        "events": lambda: many_events(folder / "events", options.events),
        "file": lambda: large_file(folder, options.rows),
    }
    try:
        for name, part in parts.items():
            if options.only in (None, name):
                (folder / name).mkdir(exist_ok=True)
                part()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
