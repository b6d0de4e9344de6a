from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.servers.environments import imports, installed
from backend.servers.environments.environment import EnvironmentRequest
from backend.servers.environments.installer import address_redactor
from backend.servers.environments.needs import EnvironmentNeeds, environment_needs
from tests.wheel_samples import settings_for, write_server, write_wheel


def needs(root: Path, name: str, requirements: str, app: str = "") -> EnvironmentNeeds:
    return environment_needs(write_server(root, name, requirements, app), settings_for(root))


@pytest.fixture(autouse=True)
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "absent_modules", lambda: frozenset(imports.UNDECLARED))


@pytest.mark.parametrize("requirements", ["", "-e nemo-gym[dev] @ ../../\n", "nemo-gym\nfastapi\npydantic>=2\n# scipy\n"])
def test_nothing_is_missing(tmp_path: Path, requirements: str) -> None:
    found = needs(tmp_path, "tiny", requirements, "import fastapi, json\n")
    assert (found.missing, found.digest, found.lines) == ((), "", ())


def test_missing_and_undeclared(tmp_path: Path) -> None:
    found = needs(tmp_path, "tiny", "nemo-gym\nfastapi\nno-such==1\n", "import openai, numpy\n")
    assert found.missing == ("no-such==1", "numpy", "openai")
    assert [line.text for line in found.lines] == ["fastapi", "no-such==1", "numpy", "openai==2.44.0"]


def test_what_people_see_of_a_requirement_holds_no_credentials(tmp_path: Path) -> None:
    lines = ("a @ git+https://ghp_only@host/a.git", "b @ https://bob:word@host:81/b.whl", "c @ https://host/@scope/c.whl")
    found = needs(tmp_path, "tiny", "\n".join(lines) + "\n")
    assert found.missing == ("a @ git+https://****@host/a.git", "b @ https://****@host:81/b.whl", "c @ https://host/@scope/c.whl")
    assert tuple(line.text for line in found.lines) == lines, "the installer gets them as they are"
    with pytest.raises(GymError) as caught:
        needs(tmp_path, "tiny", "a @ https://ghp_only@no host/a.whl\n")
    assert "ghp_only" not in str(caught.value) and "https://****@no host" in str(caught.value)


def test_addresses_that_are_none_are_the_installers_to_refuse(tmp_path: Path) -> None:
    found = needs(tmp_path, "tiny", "a @ https://bob:long-word@[::1/a.whl\n")
    assert found.missing == ("a @ https://****@[::1/a.whl",)
    assert address_redactor([found.lines[0].text]).text("cannot parse https://bob:long-word@[::1/a.whl") == (
        "cannot parse https://bob:****@[::1/a.whl"
    )


def test_what_tests_need_comes_on_top(tmp_path: Path) -> None:
    request = write_server(tmp_path, "tiny", "nemo-gym\n")
    (request.folder / "tests" / "deep").mkdir(parents=True)
    (request.folder / "tests" / "deep" / "test_app.py").write_text("import pandas\n")
    assert environment_needs(request, settings_for(tmp_path)).missing == ()
    found = environment_needs(replace(request, also=("pytest>=8", "no-such-plugin")), settings_for(tmp_path))
    assert found.missing == ("no-such-plugin", "pandas")


@pytest.mark.parametrize(
    ("app", "project", "missing"),
    [
        ("import json\n", '[project]\nname = "my-server"\ndependencies = ["nemo-gym"]\n', False),
        ("import my_server\n", '[project]\nname = "my-server"\ndependencies = ["nemo-gym"]\n', True),
        ("import json\n", '[project]\nname = "my-server"\ndynamic = ["dependencies"]\n', True),
    ],
)
def test_a_project_is_installed_where_it_has_to_be(tmp_path: Path, app: str, project: str, missing: bool) -> None:
    folder = tmp_path / "resources_servers" / "tiny"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(app)
    (folder / "pyproject.toml").write_text(project)
    found = environment_needs(EnvironmentRequest(("a",), "resources_servers", "tiny", folder), settings_for(tmp_path))
    assert found.missing == ((str(folder),) if missing else ())
    assert [line.for_installer() for line in found.lines] == ([f"-e {folder}"] if missing else [])


def test_equal_sets_have_one_name(tmp_path: Path) -> None:
    one = needs(tmp_path, "a", "nemo-gym\nno-such==1\n--extra-index-url https://u:first@host/simple\nother\n")
    two = needs(
        tmp_path, "b", "# the same\nother\n-e nemo-gym[dev] @ ../../\n--extra-index-url https://host/simple\nno-such==1\n"
    )
    assert one.digest == two.digest and len(one.digest) == 16


def test_whatever_changes_the_outcome_changes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path / "wheels", "tinypkg")
    folder = write_server(tmp_path, "tiny", "").folder
    source = folder / "lib"
    source.mkdir()
    text = f"tinypkg @ {wheel.as_uri()}\n./lib\n"
    names = []

    def note(requirements: str = text, change: Callable[[], object] = lambda: None) -> None:
        change()
        names.append(needs(tmp_path, "tiny", requirements).digest)

    note()
    note()
    assert names[0] == names[1]
    note(change=lambda: write_wheel(tmp_path / "wheels", "tinypkg", code="VALUE = 88\n"))
    note(change=lambda: (source / "module.py").write_text("x = 1\n"))
    note(change=lambda: os.utime(source / "module.py", ns=(1, 2**62)))
    note(text + "other\n")
    note(text + "other==1\n")
    note(text + "other==1\n--pre\n")
    note(text + "other==1\n--index-url https://host/simple\n", lambda: (folder / "overrides.txt").write_text("idna==1\n"))
    note(change=lambda: (folder / "overrides.txt").write_text("idna==2\n"))
    note(change=lambda: monkeypatch.setenv("NEMO_GYM_ALLOW_PRERELEASE", "true"))
    note(change=lambda: monkeypatch.setattr(installed, "own_distributions", lambda: (Path("new-1.0.dist-info"),)))
    assert len(set(names)) == len(names) - 1
