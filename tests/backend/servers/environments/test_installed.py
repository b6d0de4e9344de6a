from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path

import pytest

from backend.errors import GymError, Place
from backend.servers.environments import installed
from backend.servers.environments.installed import name_and_version, own_distributions, own_requirements, unsatisfied
from backend.servers.environments.requirement_lines import RequirementLine


def asked(text: str) -> bool:
    """Whether `text` would need an installation."""
    return bool(unsatisfied([RequirementLine(text, Place("requirements.txt", 1))]))


@pytest.mark.parametrize(
    "text",
    [
        "fastapi",
        "FastAPI>=0.1",
        "PyYAML",
        "pyyaml ; python_version >= '3.11'",
        "no-such-package ; sys_platform == 'never'",
        "uvicorn!=0.0.1",
        f"pydantic=={metadata.version('pydantic')}",
    ],
)
def test_satisfied(text: str) -> None:
    assert not asked(text)


@pytest.mark.parametrize(
    "text",
    [
        "no-such-package",
        "fastapi<0.1",
        "no-such-package ; python_version >= '3'",
        "fastapi @ https://host/fastapi-1.0-py3-none-any.whl",
        "fastapi @ git+https://host/fastapi.git",
    ],
)
def test_not_satisfied(text: str) -> None:
    assert asked(text)


def test_what_only_an_installer_can_tell_is_never_satisfied() -> None:
    place = Place("requirements.txt", 1)
    assert (
        len(unsatisfied([RequirementLine("/some/where", place, is_source=True), RequirementLine("x", place, editable=True)])) == 2
    )


def test_a_requirement_that_makes_no_sense_is_told_with_its_line() -> None:
    with pytest.raises(GymError, match="cannot read the requirement `scipy >=> 1`") as caught:
        asked("scipy >=> 1")
    assert caught.value.place == Place("requirements.txt", 1)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of distributions that this interpreter sees."""
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return tmp_path


def install(site: Path, name: str, version: str, *lines: str, direct_url: str = "") -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""]))
    if direct_url:
        (folder / "direct_url.json").write_text(direct_url)
    importlib.invalidate_caches()


def test_extras_count_with_what_they_need(site: Path) -> None:
    install(site, "leaf", "1.0")
    install(
        site,
        "tree",
        "2.0",
        "Requires-Dist: unrelated-thing",
        "Requires-Dist: leaf>=1 ; extra == 'good'",
        "Requires-Dist: leaf>=9 ; extra == 'bad'",
        "Requires-Dist: tree[good,circle] ; extra == 'circle'",
    )
    assert not asked("tree") and not asked("tree[good]") and not asked("tree[circle]")
    assert asked("tree[bad]") and asked("tree[good,bad]")


def test_a_distribution_from_a_repository(site: Path) -> None:
    recorded = '{"url": "https://host/a.git", "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "c0ffee"}}'
    install(site, "vcs_made", "1.0", direct_url=recorded)
    install(site, "url_made", "1.0", direct_url='{"url": "https://host/u.whl", "archive_info": {}}')
    install(site, "file_made", "1.0", direct_url='{"url": "file:///u.whl", "archive_info": {}}')
    assert not asked("vcs-made @ git+https://host/a.git@v1") and not asked("vcs-made @ git+https://host/a.git")
    assert not asked("vcs-made @ git+https://host/a.git@c0ffee")
    assert asked("vcs-made @ git+https://host/a.git@v2") and asked("vcs-made @ git+https://host/b.git")
    assert asked("vcs-made @ git+https://host/a.git@v1#subdirectory=deep")
    assert not asked("url-made @ https://host/u.whl#sha256=00") and asked("url-made @ https://host/v.whl")
    assert asked("file-made @ file:///u.whl")


def test_own_distributions_name_what_is_here() -> None:
    found = dict(map(name_and_version, own_distributions()))
    assert found["fastapi"] == metadata.version("fastapi")
    assert found["pydantic-core"] == metadata.version("pydantic-core")
    assert len(found) == len(own_distributions())


def test_own_requirements() -> None:
    core, with_extra = own_requirements(), own_requirements(("compat",))
    assert "textual==8.2.8" in core and not any(text.startswith("openai") for text in core)
    assert set(core) < set(with_extra) and "openai==2.44.0" in with_extra
    assert not any(text.startswith("gym-tui") for text in own_requirements(("dev",)))


def test_uninstalled_there_are_no_own_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "DISTRIBUTION", "no-such-distribution")
    assert own_requirements() == []


def test_own_site_folders_are_folders_of_this_interpreter() -> None:
    assert all(str(folder) in sys.path for folder in installed.own_site_folders())
