"""Docker sandboxes against a `docker` program that plays the daemon."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from backend.servers.sandbox import (
    AsyncSandbox,
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxError,
    SandboxSpec,
    SandboxStatus,
    create_provider,
)
from backend.servers.sandbox.providers.base import SandboxConfigError
from backend.servers.sandbox.providers.docker import DockerCreateConfig, DockerProvider
from tests.backend.servers.sandbox.fake_docker import Daemon

SPEC = SandboxSpec(image="docker://ubuntu:22.04")


async def test_a_sandbox_is_one_container_from_start_to_stop(daemon: Daemon) -> None:
    async with daemon.box(SPEC) as box:
        sandbox_id = (await box.serialize())["sandbox_id"]
        assert daemon.run_words() == [
            "run", "--detach", "--rm", "--name", sandbox_id, "--label", f"nemo-gym.sandbox={sandbox_id}", "--init",
            "--entrypoint", "/bin/sh", "ubuntu:22.04", "-c", "while :; do sleep 86400; done",
        ]  # fmt: skip
        assert await box.status() is SandboxStatus.RUNNING
        result = await box.exec("echo out; echo err >&2; exit 3", cwd="/work", user="root")
        assert (result.stdout, result.stderr, result.return_code, result.error_type) == ("out\n", "err\n", 3, None)
        words = daemon.calls("exec")[-1]["argv"]
        assert words[3:] == [
            "--workdir", "/work", "--user", "root", sandbox_id, "bash", "-c", "echo out; echo err >&2; exit 3",
        ]  # fmt: skip
    assert daemon.calls("rm")[-1]["argv"] == ["rm", "--force", "--volumes", sandbox_id]
    assert not (daemon.home / sandbox_id).exists()


async def test_all_that_a_request_and_the_settings_say(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMO_GYM_TEAM", "evals")
    monkeypatch.setenv("NEMO_GYM_RUN_ID", "r1")
    spec = SandboxSpec(
        image="img",
        ttl_s=90,
        workdir="/app",
        metadata={"instance_id": "a b"},
        resources={"cpu": 1.5, "memory_mib": 512, "disk_gib": 20, "gpu": 1},  # type: ignore[arg-type]
        ports=[8000],  # type: ignore[arg-type]
        provider_options={"volumes": ["/a:/b:ro"], "run_args": ["--device", "/dev/kvm"]},
    )
    create = {
        "network": "none", "read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "pids_limit": 64,
        "extra_run_args": ["-v", "/x:/y"],
    }  # fmt: skip
    async with daemon.box(spec, create=create) as box:
        text = " ".join(daemon.run_words())
        for piece in (
            "--label nemo-gym.team=evals", "--label nemo-gym.run_id=r1", "--label nemo-gym.metadata.instance_id=a b",
            "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit 64",
            "--cpus 1.5", "--memory 512m", "--gpus 1", "--workdir /app", "--publish 127.0.0.1::8000",
            "-v /x:/y --volume /a:/b:ro --device /dev/kvm --entrypoint /bin/sh img -c sleep 90",
        ):  # fmt: skip
            assert piece in text
        assert (await box.endpoint(8000)).endpoint == "http://127.0.0.1:49153"
        with pytest.raises(SandboxError, match="find port 9"):
            await box.endpoint(9)
    entry = SandboxSpec(image="img", entrypoint=["/usr/bin/tini", "-s", "/run.sh"], resources={"cpu": 2})  # type: ignore[arg-type]
    async with daemon.box(entry, create={"apply_resource_limits": False}):
        words = daemon.run_words()
        assert words[-5:] == ["--entrypoint", "/usr/bin/tini", "img", "-s", "/run.sh"]
        assert "--init" not in words and "--cpus" not in words


async def test_what_variables_hold_is_not_in_the_process_list(daemon: Daemon) -> None:
    spec = SandboxSpec(image="img", env={"API_KEY": "sk-1", "PATH": "/opt/bin"})
    async with daemon.box(spec) as box:
        run = daemon.calls("run")[-1]
        assert "sk-1" not in " ".join(run["argv"]) and run["env"]["API_KEY"] == "sk-1"
        assert "PATH=/opt/bin" in run["argv"] and run["env"]["PATH"] == os.environ["PATH"]
        await box.exec("true", env={"TOKEN": "t-2"})
        call = daemon.calls("exec")[-1]
        assert call["argv"][:3] == ["exec", "--env", "TOKEN"] and call["env"]["TOKEN"] == "t-2"
        with pytest.raises(SandboxConfigError, match="no name"):
            await box.exec("true", env={"A=B": "x"})


async def test_a_command_whose_time_is_up_is_killed_in_the_container(daemon: Daemon) -> None:
    async with daemon.box(SPEC) as box:
        began = time.monotonic()
        await box.exec("true")
        usual = time.monotonic() - began
        result = await box.exec("exec sleep 300", timeout_s=1 + 5 * usual)  # the command has to be there when its time is up
        assert time.monotonic() - began < 150
        assert (result.return_code, result.error_type) == (125, "timeout")
        assert_killed_in_the_container(daemon)


async def test_a_command_that_nobody_waits_for_is_killed_in_the_container(daemon: Daemon) -> None:
    async with daemon.box(SPEC) as box:
        command = asyncio.create_task(box.exec("touch begun; exec sleep 300"))
        begun = daemon.home / (await box.serialize())["sandbox_id"] / "work" / "begun"
        while not begun.exists():
            await asyncio.sleep(0.02)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command
        assert_killed_in_the_container(daemon)


def assert_killed_in_the_container(daemon: Daemon) -> None:
    killer = daemon.calls("exec")[-1]["argv"]
    mark = daemon.calls("exec")[-2]["env"]["GYM_SANDBOX_EXEC_ID"]
    assert killer[-1] == f"GYM_SANDBOX_EXEC_ID={mark}" and killer[1:3] == ["--user", "0"]
    # The fake runs commands on this machine: the script has just found the orphan by its mark and ended it.
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                assert mark.encode() not in (entry / "environ").read_bytes()
            except OSError:
                continue


async def test_a_caller_that_gives_up_while_a_container_starts_leaves_none(daemon: Daemon) -> None:
    daemon.tell("slow")
    start = asyncio.create_task(daemon.box(SPEC).start())
    while not list(daemon.home.glob("gym-sandbox-*/work")):
        await asyncio.sleep(0.02)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not list(daemon.home.glob("gym-sandbox-*"))


async def test_a_container_that_is_gone_is_the_runtimes_failure(daemon: Daemon) -> None:
    box = await daemon.box(SPEC).start()
    (daemon.home / (await box.serialize())["sandbox_id"]).rename(daemon.home / "elsewhere")
    result = await box.exec("true")
    assert (result.return_code, result.error_type) == (125, "sandbox") and "No such container" in (result.stderr or "")
    assert await box.status() is SandboxStatus.STOPPED
    await box.stop()


async def test_files_go_in_and_out(daemon: Daemon, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("hello")
    async with daemon.box(SandboxSpec(image="img", files={"/etc/notes": "n"})) as box:
        root = daemon.home / (await box.serialize())["sandbox_id"]
        assert (root / "etc/notes").read_text() == "n"
        await box.upload(source, "/opt/deep/in.txt")
        assert daemon.calls("exec")[-1]["argv"][3:] == [root.name, "mkdir", "-p", "--", "/opt/deep"]
        assert daemon.calls("cp")[-1]["argv"] == ["cp", str(source), f"{root.name}:/opt/deep/in.txt"]
        await box.upload(source, "rel.txt")
        await box.upload(source, "~/.m2/settings.xml")
        await box.upload(source, "~draft.txt")
        assert (root / "work/rel.txt").exists() and (root / "root/.m2/settings.xml").exists()
        assert (root / "work/~draft.txt").exists(), "only `~` and `~/` mean the home folder"
        await box.download("/opt/deep/in.txt", tmp_path / "new" / "out.txt")
        assert (tmp_path / "new" / "out.txt").read_text() == "hello"
        assert "--follow-link" in daemon.calls("cp")[-1]["argv"]
        with pytest.raises(SandboxError, match="no regular file"):
            await box.download("/opt/deep", tmp_path / "folder")
        with pytest.raises(SandboxError, match="Could not find the file"):
            await box.download("/missing", tmp_path / "x")


async def test_create_says_what_is_wrong(daemon: Daemon) -> None:
    with pytest.raises(SandboxConfigError, match="image"):
        await daemon.box(SandboxSpec()).start()
    with pytest.raises(SandboxConfigError, match="image"):
        await daemon.box(SandboxSpec(image="--privileged")).start()
    with pytest.raises(SandboxConfigError, match="`volume` is no option"):
        await daemon.box(SandboxSpec(image="img", provider_options={"volume": "x"})).start()
    with pytest.raises(SandboxConfigError, match="list of texts"):
        await daemon.box(SandboxSpec(image="img", provider_options={"volumes": [1]})).start()
    daemon.tell("no-shell")
    with pytest.raises(SandboxCreateVerificationError, match="no command in it"):
        await daemon.box(SPEC).start()
    assert daemon.calls("rm"), "the container that fails is removed"
    daemon.tell("no-daemon")
    with pytest.raises(SandboxCreateError, match="Cannot connect to the Docker daemon"):
        await daemon.box(SPEC).start()


async def test_without_docker_there_is_one_clear_message() -> None:
    with pytest.raises(SandboxCreateError, match=r"cannot run `/no/docker`[\s\S]*install Docker") as caught:
        await AsyncSandbox({"docker": {"binary": "/no/docker"}}, SPEC).start()
    assert isinstance(caught.value, RuntimeError)


async def test_a_container_that_cannot_be_removed_is_told(daemon: Daemon) -> None:
    box = await daemon.box(SPEC).start()
    daemon.tell("stuck")
    with pytest.raises(SandboxError, match="driver failed to remove"):
        await box.stop()
    (daemon.home / "stuck").unlink()
    await box.stop()
    assert not list(daemon.home.glob("gym-sandbox-*"))


async def test_another_process_can_connect(daemon: Daemon) -> None:
    provider = DockerProvider(create=DockerCreateConfig(network="host"), binary=daemon.binary)
    box = await AsyncSandbox(provider, SPEC).start()
    other = await AsyncSandbox.connect(await box.serialize(), provider={"docker": {"binary": daemon.binary}})
    assert (await other.exec("echo same")).stdout == "same\n"
    await other.stop()
    for sandbox_id in (other._spec, "--all", "gym-sandbox-none"):
        with pytest.raises((SandboxError, SandboxConfigError)):
            await AsyncSandbox.connect({"sandbox_id": sandbox_id}, provider=provider)
    await box.stop()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SandboxConfigError, match="netwrk"):
        create_provider({"docker": {"create": {"netwrk": "none"}}})
