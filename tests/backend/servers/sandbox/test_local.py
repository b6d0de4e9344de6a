"""Local sandboxes with real commands: what they see, what is kept of them, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend.servers.sandbox import (
    AsyncSandbox,
    Sandbox,
    SandboxCreateError,
    SandboxError,
    SandboxSpec,
    SandboxStatus,
    create_provider,
    keeper,
)
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxPtyError


@asynccontextmanager
async def sandbox(spec: SandboxSpec | None = None, **settings: object) -> AsyncIterator[AsyncSandbox]:
    async with AsyncSandbox({"local": settings}, spec or SandboxSpec()) as box:
        yield box


async def out(box: AsyncSandbox, command: str, **options: object) -> str:
    result = await box.exec(command, **options)  # type: ignore[arg-type]
    assert (result.return_code, result.error_type) == (0, None), result
    return (result.stdout or "").strip()


async def root_of(box: AsyncSandbox) -> Path:
    return Path(await out(box, 'printf %s "$SANDBOX_ROOT"'))


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)


async def test_a_command_and_what_it_leaves() -> None:
    async with sandbox() as box:
        result = await box.exec("echo out; echo err >&2; exit 3")
        assert (result.stdout, result.stderr, result.return_code, result.error_type) == ("out\n", "err\n", 3, None)
        assert (await box.exec("kill -TERM $$")).return_code == 128 + signal.SIGTERM
        assert (await box.exec("no-such-program-here")).return_code == 127
        assert await out(box, "cat; echo nothing to read") == "nothing to read"
        assert await box.status() is SandboxStatus.RUNNING
        root = await root_of(box)
        assert root.is_dir()
    assert not root.exists()


async def test_only_the_commands_text_goes_to_a_shell() -> None:
    async with sandbox(SandboxSpec(env={"A": "$(id)"}, workdir="w; echo x")) as box:
        assert await out(box, 'echo "$A $B" && pwd', env={"B": "`id`"}) == f"$(id) `id`\n{await root_of(box)}/w; echo x"


async def test_the_environment_is_not_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-server")
    monkeypatch.setenv("TZ", "UTC")
    async with sandbox(SandboxSpec(env={"MINE": "1"})) as box:
        names = {line.partition("=")[0] for line in (await out(box, "env", env={"THIS": "2"})).splitlines()}
        assert names - {"PWD", "OLDPWD", "_", "SHLVL"} <= {
            "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "SANDBOX_ROOT", "MINE", "THIS",
        }  # fmt: skip
        assert {"MINE", "THIS", "TZ", "PATH"} <= names
        assert await out(box, 'echo "$HOME"') == str(await root_of(box))
        keeper = psutil.Process(int(await out(box, "echo $PPID")))
        assert "OPENAI_API_KEY" not in keeper.environ()
    async with sandbox(inherit_env=["OPENAI_API_KEY"]) as box:
        assert await out(box, "/usr/bin/printenv OPENAI_API_KEY") == "sk-secret-of-the-server"


async def seconds_for_nothing(box: AsyncSandbox) -> float:
    """What a command costs here and now; a limit has to leave room for it."""
    began = time.monotonic()
    await box.exec("true")
    return time.monotonic() - began


async def test_time_is_limited_for_the_whole_group() -> None:
    async with sandbox() as box:
        began = time.monotonic()
        result = await box.exec("sleep 300 & echo $!; echo started; wait", timeout_s=0.5 + 5 * await seconds_for_nothing(box))
        assert time.monotonic() - began < 150
        assert (result.return_code, result.error_type) == (125, "timeout")
        pid, word = (result.stdout or "").split()
        assert word == "started" and gone(int(pid))
        assert await out(box, "echo still here") == "still here"


async def test_a_cancelled_call_ends_its_command() -> None:
    async with sandbox() as box:
        task = asyncio.create_task(box.exec("echo $$ > pid; exec sleep 300"))
        pid_file = await root_of(box) / "pid"
        while not (pid_file.exists() and pid_file.read_text().strip()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(gone, int(pid_file.read_text()))


async def test_output_is_limited_and_the_command_not_held_up() -> None:
    async with sandbox(output_limit_bytes=1000) as box:
        result = await box.exec("echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end")
        text = result.stdout or ""
        assert len(text) < 1100 and text.startswith("begin\nxxx") and text.endswith("xx\nend\n")
        assert f"[… {5_000_000 + 6 + 1 + 4 - 1000} bytes left out …]" in text
        assert await out(box, "printf '\\377ok'") == "\ufffdok"


async def test_what_runs_in_the_background_lasts_until_the_sandbox_ends() -> None:
    async with sandbox() as box:
        began = time.monotonic()
        kept = int(await out(box, "sleep 300 & echo $!"))
        begun = "while [ ! -e begun ]; do sleep 0.02; done"
        detached = int(await out(box, f"setsid sh -c 'echo $$; touch begun; exec env -i sleep 300' & {begun}"))
        assert time.monotonic() - began < 150
        while psutil.Process(detached).name() != "sleep":
            await asyncio.sleep(0.02)
        assert psutil.pid_exists(kept)
    assert gone(kept, 0) and gone(detached, 0)


async def test_commands_run_side_by_side() -> None:
    async with sandbox() as box:
        await out(box, "mkdir there")
        wait_for_all = "while [ $(ls there | wc -l) -lt 20 ]; do sleep 0.05; done"
        commands = [out(box, f"touch there/{number}; {wait_for_all}; echo {number}") for number in range(20)]
        assert await asyncio.gather(*commands) == [str(number) for number in range(20)]
        assert await out(box, "echo $BIG | wc -c", env={"BIG": "x" * 100_000}) == "100001"


async def test_a_sandbox_ends_when_its_time_is_over() -> None:
    box = await AsyncSandbox({"local": {}}, SandboxSpec(ttl_s=2)).start()
    pid = int(await out(box, "sleep 300 & echo $!"))
    root = await root_of(box)
    with pytest.raises(SandboxError, match="ended while the command ran"):
        await box.exec("sleep 300")
    assert await asyncio.to_thread(gone, pid)
    assert await box.status() is SandboxStatus.STOPPED
    with pytest.raises(SandboxError, match="has ended"):
        await box.exec("true")
    await box.stop()
    assert not root.exists()


async def test_a_keeper_that_is_killed_is_noticed_and_leaves_nothing() -> None:
    async with sandbox() as box:
        keeper = int(await out(box, "echo $PPID"))
        task = asyncio.create_task(box.exec("exec sleep 300"))
        while not (children := psutil.Process(keeper).children()):
            await asyncio.sleep(0.02)
        child = children[0].pid
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(SandboxError, match="ended while the command ran"):
            await task
        assert await asyncio.to_thread(gone, child)
        with pytest.raises(SandboxError, match="has ended"):
            await box.exec("true")


SERVER = """
import asyncio, sys
from backend.servers.sandbox import AsyncSandbox, SandboxSpec
async def main():
    box = await AsyncSandbox({"local": {"base_dir": sys.argv[1]}}, SandboxSpec()).start()
    print((await box.exec("sleep 300 & echo $!")).stdout.strip(), flush=True)
    print((await box.exec("echo $PPID")).stdout.strip(), flush=True)
    await box.exec("echo $$ > pid; sleep 300; true", timeout_s=None)
asyncio.run(main())
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    root = Path(__file__).resolve().parents[4]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


def test_the_death_of_the_server_is_the_death_of_its_commands(server: subprocess.Popen[str], tmp_path: Path) -> None:
    assert server.stdout is not None
    background, keeper = (int(server.stdout.readline()) for _ in range(2))
    while not (files := [path for path in tmp_path.glob("*/pid") if path.read_text().strip()]):
        time.sleep(0.02)
    foreground = int(files[0].read_text())
    below = [process.pid for process in psutil.Process(keeper).children(recursive=True)]
    assert {background, foreground} <= set(below)
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert all(gone(pid) for pid in (*below, keeper))
    assert list(tmp_path.iterdir()) == []


async def test_files_go_in_and_out(tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("echo from $1\n")
    script.chmod(0o755)
    async with sandbox(SandboxSpec(workdir="/work", files={"/etc/notes.txt": "one\n", "rel.txt": "two\n"})) as box:
        root = await root_of(box)
        assert await out(box, 'cat "$HOME/etc/notes.txt" rel.txt; pwd') == f"one\ntwo\n{root}/work"
        await box.upload(local_path=script, remote_path="~/bin/s.sh")
        assert await out(box, '"$HOME/bin/s.sh" here') == "from here"
        await box.exec("mkdir -p deep && printf 'a\\000b' > deep/result")
        await box.download(remote_path="deep/result", local_path=tmp_path / "new" / "result")
        assert (tmp_path / "new" / "result").read_bytes() == b"a\0b"
        await box.upload(tmp_path / "new" / "result", "/work/deep/result")
        assert await out(box, "wc -c < deep/result", cwd="/work") == "3"
        assert await out(box, "pwd", cwd="deep") == f"{root}/work/deep"


@pytest.mark.parametrize("path", ["../x", "/../x", "a/../../x", "~/../x", "/work/../../x"])
async def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    source = tmp_path / "f"
    source.write_text("x")
    async with sandbox() as box:
        for work in (box.upload(source, path), box.download(path, tmp_path / "out"), box.exec("true", cwd=path)):
            with pytest.raises(SandboxError, match="leads out"):
                await work


async def test_links_that_a_command_planted_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("keep")
    async with sandbox() as box:
        await out(box, f"ln -s {secret} file; ln -s {tmp_path} folder; ln -s . here; mkfifo pipe; mkdir dir")
        for path in ("file", "folder/secret", "here/file"):
            with pytest.raises(SandboxError, match="symbolic link"):
                await box.download(path, tmp_path / "out")
            with pytest.raises(SandboxError, match="symbolic link"):
                await box.upload(secret, path)
        for path in ("pipe", "dir"):
            with pytest.raises(SandboxError, match="no regular file"):
                await box.download(path, tmp_path / "out")
        with pytest.raises(SandboxError, match="No such file"):
            await box.download("missing", tmp_path / "out")
        with pytest.raises(SandboxError, match="No such file"):
            await box.upload(tmp_path / "missing", "x")
        with pytest.raises(SandboxError, match="no file"):
            await box.download("/", tmp_path / "out")
    assert secret.read_text() == "keep" and not (tmp_path / "out").exists()


async def test_a_folder_without_permissions_is_deleted_too() -> None:
    async with sandbox() as box:
        root = await root_of(box)
        await out(box, "mkdir -p a/b; touch a/b/c; chmod 000 a")
    assert not root.exists()


async def test_starting_twice_and_stopping_twice() -> None:
    box = AsyncSandbox({"local": {}})
    with pytest.raises(SandboxError, match="not running"):
        await box.exec("true")
    with pytest.raises(SandboxConfigError, match="SandboxSpec"):
        await box.start()
    spec = SandboxSpec(env={"A": "1"})
    assert await box.start(spec) is box and await box.start() is box and await box.start(spec) is box
    with pytest.raises(SandboxConfigError, match="runs already"):
        await box.start(SandboxSpec())
    assert (await box.serialize())["provider"] == "local"
    assert (await box.endpoint(8000)).endpoint == "http://127.0.0.1:8000"
    with pytest.raises(SandboxPtyError, match="local"):
        await box.pty.attach("x")
    with pytest.raises(SandboxError, match="another process"):
        await AsyncSandbox.connect({"sandbox_id": "x"}, provider={"local": {}})
    await box.stop()
    await box.stop()
    assert await box.status() is SandboxStatus.STOPPED


async def test_a_provider_may_be_shared() -> None:
    provider = create_provider({"local": {}})
    first, second = [await AsyncSandbox(provider, SandboxSpec()).start() for _ in range(2)]
    assert await root_of(first) != await root_of(second)
    await first.stop()
    assert await out(second, "echo on") == "on"
    root = await root_of(second)
    await provider.aclose()
    assert not root.exists()


async def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxConfigError, match="/no/shell"):
        create_provider({"local": {"shell": "/no/shell"}})
    with pytest.raises(SandboxConfigError, match="base_folder"):
        create_provider({"local": {"base_folder": "x"}})
    with pytest.raises(SandboxError, match="folder"):
        await AsyncSandbox({"local": {"base_dir": str(tmp_path / "missing")}}, SandboxSpec()).start()
    with pytest.raises(SandboxError, match="cannot be started"):
        async with sandbox() as box:
            await box.exec("true", cwd="missing")


@pytest.mark.parametrize(
    "request_", [{"cwd": "x" * 5000}, {"cwd": "d/" * 2400}, {"env": {"SEED": 3}}, {"env": {"A": "\0"}}, {"cwd": "a\0b"}]
)
async def test_a_request_that_cannot_be_started_harms_no_other_command(request_: dict[str, Any]) -> None:
    async with sandbox() as box:
        other = asyncio.create_task(box.exec("touch begun; while ! test -e on; do sleep 0.05; done; echo went on"))
        while (await box.exec("test -e begun")).return_code != 0:
            pass
        with pytest.raises(SandboxError, match="cannot be started"):
            await box.exec("true", **request_)
        await box.exec("touch on")
        assert (await other).stdout == "went on\n"


async def test_where_descriptors_run_out_the_sandbox_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with sandbox() as box:
        other = asyncio.create_task(box.exec("sleep 0.3; echo went on"))
        await asyncio.sleep(0)
        before = len(os.listdir("/proc/self/fd"))
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(os, "pipe", no_more)
            with pytest.raises(SandboxError, match="cannot be started: Too many open files"):
                await box.exec("true")
        assert len(os.listdir("/proc/self/fd")) == before
        assert (await other).stdout == "went on\n"


async def test_without_a_process_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sys, "executable", "/no/python")
        with pytest.raises(SandboxCreateError, match="No such file"):
            await AsyncSandbox({"local": {}}, SandboxSpec()).start()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_nobody_here_may_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = subprocess.Popen(["sleep", "300"])
    foreign = mine.pid + 1  # only its number is needed: as another user's process, say one of `sudo`
    kill = os.kill

    def kill_unless_foreign(pid: int, number: int) -> None:
        if pid == foreign:
            raise PermissionError
        kill(pid, number)

    monkeypatch.setattr(os, "kill", kill_unless_foreign)
    monkeypatch.setattr(keeper, "_children", lambda _parent: [foreign] if gone(mine.pid, 0.0) else [foreign, mine.pid])
    ours, _theirs = socket.socketpair()
    keeper.Keeper(ours).end_all()
    assert gone(mine.pid)
    mine.returncode = -signal.SIGKILL  # it was reaped above


def test_the_synchronous_face(tmp_path: Path) -> None:
    with Sandbox({"local": {}}, SandboxSpec(files={"f": "text"})) as box:
        assert box.exec("cat f").stdout == "text"
        (tmp_path / "in").write_text("in")
        box.upload(tmp_path / "in", "in")
        box.download("in", tmp_path / "back")
        assert (tmp_path / "back").read_text() == "in"
        assert box.status() is SandboxStatus.RUNNING and box.endpoint(1).endpoint.endswith(":1")
        assert box.serialize()["sandbox_id"] == box._handle.sandbox_id
    box.stop()
    started = Sandbox({"local": {}}).start(SandboxSpec())
    assert started.exec("echo 1", timeout_s=5).stdout == "1\n"
    with pytest.raises(SandboxConfigError, match="runs already"):
        started.start(SandboxSpec(workdir="elsewhere"))
    assert started.exec("echo still there", timeout_s=5).stdout == "still there\n"
    started.stop()
    with pytest.raises(SandboxConfigError):
        Sandbox({"local": {}}).start()


async def test_the_synchronous_face_does_not_block_a_loop() -> None:
    with pytest.raises(SandboxError, match="AsyncSandbox"):
        Sandbox({"local": {}}).start(SandboxSpec())
