"""The settings that NeMo Gym's own `docker.yaml` has, each seen in what the fake `docker` is called with."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import nemo_gym
from backend.servers.sandbox import (
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxSpec,
    create_provider,
    resolve_provider_config,
    resolve_provider_metadata,
)
from backend.servers.sandbox.providers.base import SandboxConfigError
from backend.servers.sandbox.providers.docker import (
    DockerCreateConfig,
    DockerCreateError,
    DockerCreateVerificationError,
    DockerExecConfig,
    DockerProbeConfig,
    DockerProvider,
)
from nemo_gym.sandbox.providers.docker import DockerProvider as PublicDockerProvider
from tests.backend.servers.sandbox.fake_docker import Daemon

SPEC = SandboxSpec(image="ubuntu:22.04")
PROBE = "printf docker-sandbox-ready"
SHIPPED: dict[str, Any] = {
    "create": {
        "keepalive_shell": "/bin/sh", "keepalive_cmd": "while :; do sleep 2147483647; done", "start_timeout_s": 600, "use_init": True,
        "apply_resource_limits": True, "publish_host": "127.0.0.1",
    },
    "exec": {"default_timeout_s": 180, "concurrency": 32},
    "probe": {
        "command": PROBE, "expected_stdout": "docker-sandbox-ready", "timeout_s": 30, "deadline_s": 60, "stable_count": 1,
    },
}  # fmt: skip


def commands(daemon: Daemon) -> list[list[str]]:
    """The shell and what it was given, for each `docker exec` so far."""
    return [[words[-3], words[-1]] for words in (call["argv"] for call in daemon.calls("exec"))]


async def test_the_shipped_settings_start_probe_and_look_for_bash(daemon: Daemon) -> None:
    async with daemon.box(SPEC, **SHIPPED) as box:
        assert daemon.run_words()[-5:] == [
            "--entrypoint", "/bin/sh", "ubuntu:22.04", "-c", "while :; do sleep 2147483647; done",
        ]  # fmt: skip
        await box.exec("source x || true")
    assert commands(daemon) == [["sh", PROBE], ["sh", "command -v bash"], ["bash", "source x || true"]]


async def test_without_bash_commands_go_to_sh(daemon: Daemon) -> None:
    daemon.tell("no-bash")
    async with daemon.box(SPEC) as box:
        await box.exec("true")
    assert commands(daemon)[-1] == ["sh", "true"]


async def test_a_pinned_shell_is_not_looked_for(daemon: Daemon) -> None:
    async with daemon.box(SPEC, exec={"exec_shell": "/bin/bash"}) as box:
        await box.exec("true")
    assert commands(daemon) == [["/bin/bash", PROBE], ["/bin/bash", "true"]]


async def test_whoever_connects_looks_for_bash_too(daemon: Daemon) -> None:
    provider = DockerProvider(binary=daemon.binary)
    made = await provider.create(SPEC)
    handle = await provider.connect({"sandbox_id": made.sandbox_id})
    await provider.exec(handle, "true")
    assert commands(daemon)[-2:] == [["sh", "command -v bash"], ["bash", "true"]]


async def test_extra_arguments_stand_before_the_container(daemon: Daemon) -> None:
    async with daemon.box(SPEC, exec={"extra_exec_args": ["--privileged", "-e", "Q=1"]}) as box:
        await box.exec("true", cwd="/work")
        words = daemon.calls("exec")[-1]["argv"]
    assert words[:4] == ["exec", "--privileged", "-e", "Q=1"]
    assert words[-6:-4] == ["--workdir", "/work"]


async def test_commands_without_a_time_have_the_default_one(daemon: Daemon) -> None:
    provider = DockerProvider(exec=DockerExecConfig(default_timeout_s=1), probe={"command": None}, binary=daemon.binary)
    handle = await provider.create(SPEC)
    result = await provider.exec(handle, "exec sleep 300")
    assert (result.return_code, result.error_type) == (125, "timeout")
    own = await provider.exec(handle, "sleep 2; echo done", timeout_s=120)
    assert own.stdout == "done\n"


async def test_so_many_docker_programs_run_at_once_and_no_more(daemon: Daemon, tmp_path: Path) -> None:
    provider = DockerProvider(exec={"concurrency": 2}, probe={"command": None}, binary=daemon.binary)
    handle = await provider.create(SPEC)
    running = tmp_path / "running"
    running.mkdir()
    command = f"touch {running}/$$; ls {running} | wc -l; sleep 0.3; rm {running}/$$"
    results = await asyncio.gather(*(provider.exec(handle, command) for _ in range(6)))
    assert {int(result.stdout or 0) for result in results} <= {1, 2}

    waited_for = [asyncio.create_task(provider.exec(handle, "exec sleep 300")) for _ in range(2)]
    begun = len(daemon.calls("exec")) + 2
    while len(daemon.calls("exec")) < begun:
        await asyncio.sleep(0.02)
    in_the_queue = [asyncio.create_task(work) for work in (provider.exec(handle, "true"), provider.create(SPEC))]
    await asyncio.sleep(0.1)
    for task in in_the_queue:
        task.cancel()
    await asyncio.gather(*in_the_queue, return_exceptions=True)
    assert (len(daemon.calls("exec")), len(daemon.calls("run"))) == (begun, 1), "what never began is not cleaned up either"
    await asyncio.wait_for(provider.close(handle), 120)
    assert daemon.calls("rm"), "removing a container waits for no command"
    for task in waited_for:
        task.cancel()
    await asyncio.gather(*waited_for, return_exceptions=True)


async def test_one_provider_serves_several_loops(daemon: Daemon) -> None:
    provider = DockerProvider(exec={"concurrency": 1}, probe={"command": None}, binary=daemon.binary)

    async def crowd() -> None:
        handle = await provider.create(SPEC)
        await asyncio.gather(*(provider.exec(handle, "true") for _ in range(3)))

    for _ in range(2):
        await asyncio.to_thread(asyncio.run, crowd())


async def test_the_probe_is_repeated_until_it_is_stable(daemon: Daemon) -> None:
    probe = {"command": f"{PROBE}; echo more", "stable_count": 3, "stable_delay_s": 0.01, "timeout_s": 7}
    async with daemon.box(SPEC, probe=probe):
        assert commands(daemon) == [["sh", f"{PROBE}; echo more"]] * 3 + [["sh", "command -v bash"]]


async def test_until_the_deadline_a_container_may_become_ready(daemon: Daemon) -> None:
    (daemon.home / "not-ready").write_text("2")
    async with daemon.box(SPEC, probe={"deadline_s": 300}):
        assert commands(daemon)[:3] == [["sh", PROBE]] * 3


async def test_a_container_that_does_not_become_ready_is_removed(daemon: Daemon) -> None:
    daemon.tell("not-ready")
    with pytest.raises(
        DockerCreateVerificationError, match=r"the probe expects[\s\S]*exit code 7[\s\S]*still starting"
    ) as caught:
        await daemon.box(SPEC).start()
    assert isinstance(caught.value, SandboxCreateVerificationError) and not isinstance(caught.value, DockerCreateError)
    assert (len(commands(daemon)), len(daemon.calls("rm"))) == (1, 1)
    with pytest.raises(DockerCreateVerificationError, match="for 2 s"):
        await daemon.box(SPEC, probe={"deadline_s": 2}).start()
    assert len(daemon.calls("rm")) == 2


async def test_what_the_probe_prints_counts_and_its_exit_code(daemon: Daemon) -> None:
    for probe in ({"command": "echo nope"}, {"command": f"{PROBE}; exit 3"}):
        with pytest.raises(DockerCreateVerificationError):
            await daemon.box(SPEC, probe=probe).start()
    async with daemon.box(SPEC, probe={"command": f"echo welcome; {PROBE}; echo"}):
        pass
    async with daemon.box(SPEC, probe=DockerProbeConfig(command="echo nope", expected_stdout=None)):
        pass


async def test_without_a_probe_nothing_is_asked(daemon: Daemon) -> None:
    async with daemon.box(SPEC, probe={"command": None}, exec={"exec_shell": "sh"}):
        assert not daemon.calls("exec")


async def test_a_container_that_docker_does_not_start_is_dockers_error(daemon: Daemon) -> None:
    daemon.tell("no-daemon")
    with pytest.raises(DockerCreateError, match="Cannot connect") as caught:
        await daemon.box(SPEC).start()
    assert isinstance(caught.value, SandboxCreateError)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"exec": {"bogus": 1}}, "`exec` .* no setting `bogus`"),
        ({"exec": {"shell": "sh"}}, "`exec` .* no setting `shell`"),
        ({"probe": {"deadline": 1}}, r"no setting `deadline`[\s\S]*deadline_s"),
        ({"create": {"netwrk": "none"}}, r"no setting `netwrk`[\s\S]*network"),
        ({"prob": {}}, "prob"),
        ({"exec": [1]}, "`exec` .* a mapping"),
        ({"exec": {"concurrency": "a"}}, "exec.concurrency"),
        ({"create": {"cap_drop": "ALL"}}, "create.cap_drop"),
        ({"exec": {"extra_exec_args": "-it"}}, "exec.extra_exec_args"),
    ],
)
def test_what_does_not_fit_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(TypeError, match=named) as caught:
        create_provider({"docker": settings})
    assert isinstance(caught.value, SandboxConfigError)


def test_counts_are_at_least_one() -> None:
    for settings, named in (({"exec": {"concurrency": 0}}, "concurrency"), ({"probe": {"stable_count": 0}}, "stable_count")):
        with pytest.raises(ValueError, match=named):
            DockerProvider(**settings)  # type: ignore[arg-type]


def test_the_file_that_configurations_name_describes_a_provider() -> None:
    file = Path(nemo_gym.__file__).parent / "sandbox/providers/docker/configs/docker.yaml"
    blocks = yaml.safe_load(file.read_text())
    settings = resolve_provider_config("sandbox", blocks)
    assert {key: {**SHIPPED[key], **block} for key, block in settings["docker"].items()} == SHIPPED
    assert isinstance(create_provider(settings), PublicDockerProvider)
    assert resolve_provider_metadata("sandbox", blocks) == {"sandbox-api": "docker-cli"}


def test_the_defaults_are_the_documented_ones() -> None:
    run, probe, create = DockerExecConfig(), DockerProbeConfig(), DockerCreateConfig()
    assert (run.default_timeout_s, run.concurrency, run.exec_shell, list(run.extra_exec_args)) == (180, 32, None, [])
    assert (probe.command, probe.expected_stdout, probe.timeout_s) == (PROBE, "docker-sandbox-ready", 30)
    assert (probe.deadline_s, probe.stable_count, probe.stable_delay_s) == (None, 1, 0.0)
    assert (create.start_timeout_s, create.use_init, create.publish_host) == (600, True, "127.0.0.1")
    assert os.path.isabs(create.keepalive_shell)
