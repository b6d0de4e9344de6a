"""Terminals: of local sandboxes with real shells, and how the facade uses those of any provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest

from backend.servers.sandbox import (
    AsyncSandbox,
    SandboxError,
    SandboxExecResult,
    SandboxHandle,
    SandboxPtyError,
    SandboxPtySession,
    SandboxPtySpec,
    SandboxSpec,
    SandboxStatus,
    SupportsSandboxPty,
)
from backend.servers.sandbox.providers.local import LocalProvider


@pytest.fixture
async def box() -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox({"local": {}}, SandboxSpec()) as started:
        yield started


async def read_until(session: SandboxPtySession, text: str) -> str:
    said = ""
    async with asyncio.timeout(30):
        while text not in said:
            piece = await session.read()
            assert piece, said
            said += piece.decode()
    return said


def test_local_sandboxes_have_terminals() -> None:
    assert isinstance(LocalProvider(), SupportsSandboxPty)


async def test_a_shell_that_is_typed_to(box: AsyncSandbox) -> None:
    session = await box.pty.create(rows=11, cols=44, env={"MINE": "1"})
    assert isinstance(session, SandboxPtySession) and not session.closed
    await session.write(b"test -t 0 && test -t 1 && stty size; echo $MINE-$((40+2))\n")
    assert "11 44\r\n1-42\r\n" in await read_until(session, "-42")
    await session.resize(50, 132)
    await session.write(b"stty size\n")
    await read_until(session, "50 132\r\n")
    await session.write(b"exit 7\n")
    assert await session.wait_exit(timeout_s=30) == 7
    while await session.read():
        pass
    await session.close()
    await session.close()
    assert session.closed
    with pytest.raises(SandboxPtyError):
        await session.write(b"more")


async def test_signals_reach_the_foreground(box: AsyncSandbox) -> None:
    session = await box.pty.create()
    await session.write(b"echo go; sleep 300\n")
    await read_until(session, "go\r\n")
    await asyncio.sleep(0.2)
    await session.send_signal("int")
    await session.write(b"echo code $?\n")
    await read_until(session, "code 130")
    with pytest.raises(ValueError, match="SIGNOTHING"):
        await session.send_signal("SIGNOTHING")
    await session.close()


async def test_nothing_read_in_time_is_empty(box: AsyncSandbox) -> None:
    session = await box.pty.create("sleep 300")
    assert await session.read(timeout_s=0.05) == b""
    with pytest.raises(TimeoutError):
        await session.wait_exit(timeout_s=0.05)
    await session.close()
    assert await session.read() == b""


async def test_commands_in_one_shell(box: AsyncSandbox) -> None:
    session = await box.pty.create()
    first = await box.pty.exec("mkdir -p d && cd d\nX=3\necho a; echo b >&2; false", session=session)
    assert first == SandboxExecResult("a\nb\n", None, 1)
    assert (await box.pty.exec('pwd | grep -o "/d$"; echo $X; cat', session=session)).stdout == "/d\n3\n"
    assert await session.run_detached("echo x; exit_code() { return 4; }; exit_code") == (b"x\n", 4)
    with pytest.raises(ValueError, match="when it is created"):
        await box.pty.exec("true", session=session, cwd="/")
    with pytest.raises(SandboxPtyError):
        await box.pty.exec("exit 3", session=session)
    assert await session.run_detached("true") == (b"", None)


async def test_a_command_with_a_terminal_of_its_own(box: AsyncSandbox) -> None:
    assert await box.pty.exec("test -t 1 && echo yes; exit 5") == SandboxExecResult("yes\n", None, 5)
    assert await box.pty.exec("test -t 1 || echo no; echo e >&2", pty=False) == SandboxExecResult("no\n", "e\n", 0)
    assert await box.pty.exec("echo $A; pwd", env={"A": "1"}, cwd="tmp", detach=True, pty=False) == SandboxExecResult(
        f"1\n{(await box.exec('cd tmp; pwd')).stdout}", None, 0
    )
    late = await box.pty.exec("echo said; echo $$ > pid; exec sleep 300", timeout_s=1.0)
    assert late == SandboxExecResult("said\n", "the command was not done within 1 s", 125, "timeout")
    pid = int((await box.exec("cat pid")).stdout or "")
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("pty", [True, False])
async def test_what_a_command_leaves_in_the_background_is_not_waited_for(box: AsyncSandbox, pty: bool) -> None:
    result = await box.pty.exec("sleep 300 & echo hi", pty=pty, timeout_s=60)
    assert result == SandboxExecResult("hi\n", None, 0)


@pytest.mark.parametrize("pty", [True, False])
async def test_a_stopped_sandbox_leaves_no_descriptor_of_its_terminals(box: AsyncSandbox, pty: bool) -> None:
    before = psutil.Process().num_fds()
    for _ in range(3):
        session = await box.pty.create(pty=pty)
    await session.close()
    await box.stop()
    assert psutil.Process().num_fds() <= before


async def test_much_output_waits_for_who_reads(box: AsyncSandbox) -> None:
    result = await box.pty.exec("seq 400000", pty=False)
    assert result.stdout == "".join(f"{number}\n" for number in range(1, 400001))


async def test_more_is_typed_than_the_terminal_takes_at_once(box: AsyncSandbox) -> None:
    session = await box.pty.create()
    lines = "".join(f"echo {number:0100}\n" for number in range(400))
    result = await box.pty.exec(lines, session=session)
    assert result.stdout is not None and result.stdout.endswith(f"{399:0100}\n") and result.stdout.count("\n") == 400


async def test_the_end_of_the_sandbox_ends_its_terminals(box: AsyncSandbox) -> None:
    session = await box.pty.create()
    await session.write(b"echo pid $$\n")
    pid = int((await read_until(session, "\r\npid ")).split()[-1])
    await box.stop()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert not psutil.pid_exists(pid)
    with pytest.raises(SandboxError):
        await session.wait_exit(timeout_s=5)
    await session.close()


class Recorder:
    """A provider and its terminals in one, which note what they are asked."""

    name = "recorder"
    closed = False

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        return SandboxHandle("s", self.name, None)

    async def exec(self, handle: SandboxHandle, command: str, **options: Any) -> SandboxExecResult:
        self.asked.append((command, options["cwd"]))
        return SandboxExecResult("", "", 0)

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        return SandboxStatus.RUNNING

    async def create_pty(self, handle: SandboxHandle, spec: SandboxPtySpec) -> Recorder:
        self.asked.append(spec)
        return self

    async def attach_pty(self, handle: SandboxHandle, session_id: str, **options: Any) -> Recorder:
        self.asked.append((session_id, options))
        return self

    async def run_detached(self, command: str, *, poll_interval_s: float) -> tuple[bytes, int | None]:
        self.asked.append((command, poll_interval_s))
        return b"done", 3

    async def serialize_handle(self, handle: SandboxHandle, *, scope: str | None = None) -> dict[str, Any]:
        return {"id": handle.sandbox_id, "scope": scope}

    async def close(self, *_: Any) -> None:
        self.asked.append("close")

    async def aclose(self) -> None:
        pass


async def test_what_a_provider_is_asked() -> None:
    recorder: Any = Recorder()
    box = await AsyncSandbox(recorder, SandboxSpec(workdir="/w")).start()
    await box.exec("x")
    await box.exec("y", cwd="/z")
    assert await box.pty.exec("long", detach=True, poll_interval_s=1.0) == SandboxExecResult("done", None, 3)
    await box.pty.create("top", cwd="/z", rows=5, cols=6, user="u", env={"A": "b"}, pty=False)
    await box.pty.attach("id", since=4)
    assert recorder.asked == [
        ("x", "/w"),
        ("y", "/z"),
        SandboxPtySpec(cwd="/w"),
        ("long", 1.0),
        "close",
        SandboxPtySpec("top", "/z", {"A": "b"}, 5, 6, "u", False),
        ("id", {"takeover": True, "since": 4}),
    ]
    assert await box.serialize(scope="team") == {"id": "s", "scope": "team", "workdir": "/w"}


async def test_a_provider_without_terminals() -> None:
    provider: Any = type("Plain", (), {name: getattr(Recorder, name) for name in ("create", "close", "aclose", "name")})()
    provider.asked = []
    box = await AsyncSandbox(provider, SandboxSpec()).start()
    for attempt in (box.pty.create(), box.pty.exec("true"), box.pty.attach("id")):
        with pytest.raises(SandboxPtyError, match="recorder") as raised:
            await attempt
        assert isinstance(raised.value, NotImplementedError)
