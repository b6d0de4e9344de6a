"""Which provider a configuration asks for, the registry, and the small helpers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from backend.servers.sandbox import (
    AsyncSandbox,
    SandboxCreateError,
    SandboxExecResult,
    SandboxHandle,
    SandboxProvider,
    SandboxResources,
    SandboxSpec,
    SandboxStatus,
    create_provider,
    get_provider_class,
    list_providers,
    register_provider,
    resolve_provider_config,
    resolve_provider_metadata,
    rewrite_image,
)
from backend.servers.sandbox.confined import parts_below
from backend.servers.sandbox.output import LimitedOutput
from backend.servers.sandbox.providers import registry
from backend.servers.sandbox.providers.base import SandboxConfigError, SandboxError
from backend.servers.sandbox.providers.local import LocalProvider
from backend.servers.sandbox.utils import CPU_CAP_ENV_VARS, cpu_cap_env

BLOCK = {"default_metadata": {"team": "evals"}, "docker": {"create": {"network": "none"}}}


@pytest.mark.parametrize("config", [{"sandbox": BLOCK}, OmegaConf.create({"sandbox": BLOCK})])
def test_a_block_is_found_by_name(config: Any) -> None:
    assert resolve_provider_config("sandbox", config) == {"docker": {"create": {"network": "none"}}}
    assert resolve_provider_metadata("sandbox", config) == {"team": "evals"}
    assert type(resolve_provider_config("sandbox", config)["docker"]["create"]) is dict
    with pytest.raises(SandboxConfigError, match=r"no block `sanbox`[\s\S]*Did you mean `sandbox`"):
        resolve_provider_config("sanbox", config)


def test_a_block_may_be_given_itself() -> None:
    assert resolve_provider_config({"local": None}) == {"local": {}}
    assert resolve_provider_metadata({"local": {}}) == {}
    assert resolve_provider_config(OmegaConf.create(BLOCK)) == {"docker": {"create": {"network": "none"}}}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({}, "none"),
        ({"default_metadata": {}}, "none"),
        ({"docker": {}, "local": {}}, "docker, local"),
        (None, "no block"),
        (3, "mapping"),
    ],
)
def test_other_blocks_are_refused(block: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        resolve_provider_config("sandbox", {"sandbox": block})


class Remembering:
    """A provider as authors write them."""

    name = "remembering"
    instances: list[Remembering] = []  # noqa: RUF012

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.done: list[Any] = []
        Remembering.instances.append(self)

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        self.done.append(("create", spec))
        return SandboxHandle(sandbox_id="r-1", provider_name=self.name)

    async def exec(self, handle: SandboxHandle, command: str, **options: Any) -> SandboxExecResult:
        self.done.append((command, options))
        return SandboxExecResult(stdout="", stderr=None, return_code=0)

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        if target_path == "/refused":
            raise SandboxError("no")
        self.done.append((target_path, source_path.read_text()))

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        target_path.write_text(source_path)

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        return SandboxStatus.STARTING

    async def close(self, handle: SandboxHandle) -> None:
        self.done.append("close")

    async def aclose(self) -> None:
        self.done.append("aclose")


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    Remembering.instances.clear()


async def test_authors_can_add_providers(tmp_path: Path) -> None:
    register_provider("remembering", Remembering)
    assert "remembering" in list_providers() and get_provider_class("remembering") is Remembering
    async with AsyncSandbox({"remembering": {"a": 1}}, SandboxSpec(files={"/x": "text"})) as box:
        await box.start()
        await box.exec("ls", timeout_s=None)
        await box.download("/y", str(tmp_path / "y"))
        assert await box.status() is SandboxStatus.STARTING
    provider = Remembering.instances[0]
    assert provider.settings == {"a": 1} and isinstance(provider, SandboxProvider)
    assert [entry[0] for entry in provider.done[:3]] == ["create", "/x", "ls"]
    assert provider.done[1] == ("/x", "text")
    assert provider.done[2][1] == {"cwd": None, "env": None, "timeout_s": None, "user": None}
    assert provider.done[3:] == ["close", "aclose"]


async def test_a_sandbox_whose_files_cannot_be_put_there_is_closed() -> None:
    provider = Remembering()
    with pytest.raises(SandboxError):
        await AsyncSandbox(provider, SandboxSpec(files={"/refused": ""})).start()
    assert provider.done[-1] == "close"


async def test_a_sandbox_that_cannot_be_ended_can_be_tried_again() -> None:
    class Busy(Remembering):
        async def close(self, handle: SandboxHandle) -> None:
            await super().close(handle)
            if self.done.count("close") == 1:
                raise SandboxError("busy")

    provider = Busy()
    box = await AsyncSandbox(provider, SandboxSpec()).start()
    with pytest.raises(SandboxError, match="busy"):
        await box.stop()
    await box.stop()
    await box.stop()
    assert provider.done.count("close") == 2 and await box.status() is SandboxStatus.STOPPED


async def test_what_is_stopped_while_it_starts_does_not_stay() -> None:
    may_start = asyncio.Event()

    class Slow(Remembering):
        async def create(self, spec: SandboxSpec) -> SandboxHandle:
            await may_start.wait()
            return await super().create(spec)

    provider = Slow()
    box = AsyncSandbox(provider, SandboxSpec())
    starting = asyncio.create_task(box.start())
    await asyncio.sleep(0)
    stopping = asyncio.create_task(box.stop())
    await asyncio.sleep(0)
    may_start.set()
    await asyncio.gather(starting, stopping)
    assert [entry if isinstance(entry, str) else entry[0] for entry in provider.done] == ["create", "close"]
    assert await box.status() is SandboxStatus.STOPPED


async def test_a_provider_that_was_given_stays_open() -> None:
    provider = Remembering()
    await (await AsyncSandbox(provider, SandboxSpec()).start()).stop()
    assert provider.done[-1] == "close"
    with pytest.raises(SandboxError, match="ports"):
        await (await AsyncSandbox(provider, SandboxSpec()).start()).endpoint(1)


def test_names_of_providers() -> None:
    assert list_providers() == ["apptainer", "docker", "local"]
    assert get_provider_class("local") is LocalProvider
    with pytest.raises(SandboxConfigError, match="already"):
        register_provider("local", Remembering)
    register_provider("local", Remembering, override=True)
    assert get_provider_class("local") is Remembering
    with pytest.raises(ValueError, match=r"no sandbox provider `dcoker`[\s\S]*Did you mean `docker`"):
        get_provider_class("dcoker")
    with pytest.raises(ValueError, match=r"`opensandbox` is not part of this program[\s\S]*register_provider"):
        get_provider_class("opensandbox")
    with pytest.raises(SandboxCreateError, match="`apptainer` is not part of this program"):
        create_provider({"apptainer": {"exec": {}}})
    for shape in ({}, {"a": {}, "b": {}}, "docker"):
        with pytest.raises(SandboxConfigError, match="one name"):
            create_provider(shape)  # type: ignore[arg-type]


def test_requests() -> None:
    spec = SandboxSpec(ports=[1, 2], resources={"cpu": 2, "memory_mib": 4})  # type: ignore[arg-type]
    assert spec.ports == (1, 2) and spec.resources == SandboxResources(cpu=2, memory_mib=4)
    assert SandboxSpec(ports=None, resources=None) == SandboxSpec()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`memory` is no resource[\s\S]*memory_mib"):
        SandboxResources.from_mapping({"memory": 4})


def test_helpers() -> None:
    assert cpu_cap_env(2.7) == dict.fromkeys(CPU_CAP_ENV_VARS, "2")
    assert cpu_cap_env(0.5)["OMP_NUM_THREADS"] == "1" and cpu_cap_env(None) == {}
    rewrites = [{"from": "docker.io/a/", "to": "m/a/"}, {"from": "docker.io/", "to": "mirror/"}]
    assert rewrite_image("docker.io/a/b:1", rewrites) == "m/a/b:1"
    assert rewrite_image("docker.io/x:1", rewrites) == "mirror/x:1"
    assert rewrite_image("quay.io/x:1", rewrites) == "quay.io/x:1" == rewrite_image("quay.io/x:1", None)


def test_the_namespace_has_the_same_modules() -> None:
    code = (
        "import nemo_gym.sandbox as a, backend.servers.sandbox as b; assert a is b\n"
        "from nemo_gym.sandbox.providers.docker import DockerProvider\n"
        "from nemo_gym.sandbox.providers.base import SandboxCreateError\n"
        "from nemo_gym.sandbox.providers.apptainer import ApptainerProvider\n"
        "from nemo_gym.sandbox.config import resolve_provider_config\n"
        "from nemo_gym.sandbox.utils import cpu_cap_env\n"
        "assert SandboxCreateError is a.SandboxCreateError and a.get_provider_class('docker') is DockerProvider\n"
        "import sys; assert not {'fastapi', 'aiohttp', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[4])


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(2, 60))
def test_limited_output_keeps_both_ends(pieces: list[bytes], limit: int) -> None:
    kept = LimitedOutput(limit)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    half = limit // 2
    if len(whole) <= 2 * half:
        assert kept.text() == whole.decode("utf-8", "replace")
    else:
        expected = whole[:half], len(whole) - 2 * half, whole[-half:]
        head, missing, tail = expected
        said = f"\n[… {missing} bytes left out …]\n"
        assert kept.text() == head.decode("utf-8", "replace") + said + tail.decode("utf-8", "replace")
    assert kept.tail_length <= half + 40


@given(st.text(alphabet="a./~", max_size=12), st.sampled_from(["", "w", "w/x"]))
def test_steps_never_lead_out(path: str, workdir: str) -> None:
    try:
        steps = parts_below(path, workdir)
    except SandboxError:
        return
    assert not {"", ".", ".."} & set(steps) and not any("/" in step for step in steps)


def test_a_status_is_its_text() -> None:
    assert SandboxStatus.RUNNING == "running"
    assert json.dumps({"status": SandboxStatus.RUNNING}) == '{"status": "running"}'
    assert f"{SandboxStatus.RUNNING}" == "SandboxStatus.RUNNING"


def test_resources_of_a_configuration() -> None:
    asked = SandboxResources.from_mapping({"cpu": "2", "memory_mib": 512.0, "gpu": 1, "gpu_type": "H100", "disk_gib": None})
    assert asked == SandboxResources(cpu=2.0, memory_mib=512, gpu=1, gpu_type="H100")
    assert SandboxResources.from_mapping(resources=None) == SandboxResources()
    for wrong in ({"cpus": 1}, {"gpu": "many"}):
        with pytest.raises(ValueError, match=r"resource|number"):
            SandboxResources.from_mapping(wrong)


def test_ports_of_a_request() -> None:
    assert SandboxSpec(ports=["80", 65535]).ports == (80, 65535)  # type: ignore[arg-type]
    for wrong in ([0], [65536], [80, 80]):
        with pytest.raises(ValueError, match="port"):
            SandboxSpec(ports=wrong)  # type: ignore[arg-type]


def test_a_provider_may_replace_what_a_handle_holds() -> None:
    handle = SandboxHandle("s", "mine", 1)
    handle.raw = 2
    assert handle == SandboxHandle(sandbox_id="s", provider_name="mine", raw=2)


def test_what_is_wrong_with_a_provider_is_told_by_the_documented_classes() -> None:
    with pytest.raises(ValueError, match="no sandbox provider `x`"):
        get_provider_class("x")
    for settings in ({"nope": 1}, "text"):
        with pytest.raises(TypeError, match="docker"):
            create_provider({"docker": settings})
    with pytest.raises(TypeError, match="a name or a mapping"):
        resolve_provider_config(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="default_metadata"):
        resolve_provider_metadata({"docker": {}, "default_metadata": 3})


def test_arguments_may_be_named_as_documented() -> None:
    blocks = {"box": {"docker": {"create": {}}, "default_metadata": {"team": "evals"}}}
    assert resolve_provider_config(sandbox_provider="box", named_configs=blocks) == {"docker": {"create": {}}}
    assert resolve_provider_metadata(sandbox_provider="box", named_configs=blocks) == {"team": "evals"}
    assert rewrite_image(None, [{"from": "a", "to": "b"}]) is None
