from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.homes import cache_home
from backend.io.roots import INSTALL_ROOT
from backend.servers.environments import store
from tests.wheel_samples import settings_for

DIGEST = "0123456789abcdef"


def make_environment(path: Path, *, complete: bool = False) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").touch()
    (path / "bin" / "activate").touch()
    if complete:
        store.mark_complete(path, {"layered": True})
    return path


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    return make_environment(cache_home("venvs") / DIGEST, complete=True)


def test_the_documented_place(tmp_path: Path) -> None:
    folder = tmp_path / "resources_servers" / "tiny"
    settings = settings_for(tmp_path / "venvs")
    assert store.documented_path("resources_servers", "tiny", folder, settings) == (
        tmp_path / "venvs" / "resources_servers" / "tiny" / ".venv"
    )
    in_place = replace(settings, uv_venv_dir=INSTALL_ROOT)
    assert store.documented_path("resources_servers", "tiny", folder, in_place) == folder / ".venv"


def test_an_environment_has_python_and_activate(tmp_path: Path, stored: Path) -> None:
    path = make_environment(tmp_path / ".venv")
    assert store.is_environment(path) and not store.is_stored(path)
    (path / "bin" / "activate").unlink()
    assert not store.is_environment(path)
    assert store.is_environment(stored)
    (stored / ".complete").unlink()
    assert not store.is_environment(stored)


def test_what_is_deleted_loses_its_mark_first(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as deletion_cut_short:
        deletion_cut_short.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            store.discard(stored)
    assert stored.exists() and not store.is_complete(stored)
    store.discard(stored)
    store.discard(stored)
    assert not stored.exists()


def test_only_finished_environments_are_found(tmp_path: Path, stored: Path) -> None:
    settings = settings_for(tmp_path)
    assert store.stored_environment(DIGEST, settings) == stored
    assert store.read_facts(stored) == {"layered": True}
    assert (stored / ".complete").stat().st_mode & 0o077 == 0
    (stored / ".complete").unlink()
    assert store.stored_environment(DIGEST, settings) is None
    assert store.read_facts(stored) == {}


def test_linking_replaces_our_links_only(tmp_path: Path, stored: Path) -> None:
    documented = tmp_path / "resources_servers" / "a b" / ".venv"
    store.link(documented, stored)
    assert documented.readlink() == stored
    other = make_environment(stored.with_name("f" * 16), complete=True)
    store.link(documented, other)
    assert documented.readlink() == other
    assert [path.name for path in documented.parent.iterdir()] == [".venv"]
    store.unlink(documented)
    assert not documented.is_symlink() and other.is_dir()


def test_what_a_user_put_there_stays(tmp_path: Path, stored: Path) -> None:
    real = make_environment(tmp_path / "one" / ".venv")
    elsewhere = make_environment(tmp_path / "elsewhere")
    linked = tmp_path / "two" / ".venv"
    linked.parent.mkdir()
    linked.symlink_to(elsewhere)
    for documented in (real, linked):
        store.link(documented, stored)
        store.unlink(documented)
    assert not real.is_symlink() and (real / "bin" / "python").exists()
    assert linked.readlink() == elsewhere


def test_a_place_that_cannot_be_written_gets_no_link(tmp_path: Path, stored: Path) -> None:
    (tmp_path / "file").touch()
    store.link(tmp_path / "file" / "tiny" / ".venv", stored)
    assert (tmp_path / "file").is_file() and store.is_stored(stored)


def test_an_unwritable_home_moves_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "file"))
    settings = settings_for(tmp_path / "work")
    assert store.store_folder(settings) == tmp_path / "work" / ".venvs"
    path = make_environment(tmp_path / "work" / ".venvs" / DIGEST, complete=True)
    assert store.stored_environment(DIGEST, settings) == path and store.is_stored(path)
    with pytest.raises(GymError, match="no place for virtual environments"):
        store.store_folder(settings_for(tmp_path / "file"))


async def test_one_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    async def take(name: str) -> None:
        async with store.locked(tmp_path / DIGEST, lambda: order.append(f"{name} waits")):
            order.append(f"{name} in")
            await asyncio.sleep(0.05)
            order.append(f"{name} out")

    await asyncio.gather(take("a"), take("b"))
    assert order == ["a in", "b waits", "a out", "b in", "b out"]


async def test_who_inherited_the_lock_holds_it(tmp_path: Path) -> None:
    async with store.locked(tmp_path / DIGEST, lambda: None) as descriptor:
        heir = os.dup(descriptor)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2), store.locked(tmp_path / DIGEST, lambda: None):
            pass
    os.close(heir)
    async with asyncio.timeout(5), store.locked(tmp_path / DIGEST, lambda: None):
        pass


def test_own_packages_shows_ours_and_nothing_else(tmp_path: Path, stored: Path) -> None:
    folder = store.own_packages(settings_for(tmp_path))
    assert store.own_packages(settings_for(tmp_path)) == folder
    assert sorted(path.name for path in folder.iterdir()) == ["backend", "nemo_gym"]
    assert (folder / "backend").resolve() == INSTALL_ROOT / "backend"
