from __future__ import annotations

from pathlib import Path

import pytest

from backend.errors import GymError
from backend.servers.environments.requirement_files import server_requirements


def test_both_files_or_neither_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GymError, match="has neither") as caught:
        server_requirements(tmp_path)
    assert caught.value.place is not None and caught.value.place.file == str(tmp_path)
    (tmp_path / "requirements.txt").touch()
    assert server_requirements(tmp_path).lines == ()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(GymError, match="has both"):
        server_requirements(tmp_path)


def test_overrides_are_read_beside_the_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("nemo-gym\nscipy\n")
    (tmp_path / "overrides.txt").write_text("# newer than scipy wants\nnumpy==2.3.2\nagp; sys_platform == 'never'\n")
    found = server_requirements(tmp_path)
    assert [line.text for line in found.lines] == ["scipy"] and found.names_this_project
    assert [line.text for line in found.overrides] == ["numpy==2.3.2", "agp; sys_platform == 'never'"]


def test_a_project_file(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "src" / "inner").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "my-server"\nrequires-python = ">=3.13"\ndependencies = [\n  "nemo-gym[dev]",\n  "scipy>=1",\n'
        '  "infilling",\n  "lib[x]; sys_platform == \'linux\'",\n]\n'
        '[tool.uv.sources]\nnemo-gym = { path = "../..", editable = true }\nlib = { path = "lib" }\n'
        'infilling = { git = "https://host/infilling.git", rev = "abc", subdirectory = "py" }\n'
    )
    found = server_requirements(tmp_path)
    assert [line.text for line in found.lines] == [
        "scipy>=1",
        "infilling @ git+https://host/infilling.git@abc#subdirectory=py",
        f'lib[x] @ {(tmp_path / "lib").as_uri()} ; sys_platform == "linux"',
    ]
    assert found.lines[0].place.line == 6
    assert found.names_this_project and found.project == ("inner", "my_server") and not found.project_unread
    assert found.requires_python == ">=3.13"


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ('[project]\nname = "a"\n', False),
        ('[project]\nname = "a"\ndynamic = ["version"]\n', False),
        ('[project]\nname = "a"\ndynamic = ["dependencies"]\n', True),
        ('[tool.poetry]\nname = "a"\n', True),
    ],
)
def test_dependencies_that_only_a_build_tells(tmp_path: Path, text: str, unread: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert server_requirements(tmp_path).project_unread is unread


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project\n", "no valid TOML"),
        ('[project]\ndependencies = "scipy"\n', "`project.dependencies` must be a list"),
        ("project = 3\n", "`project` must be a table"),
        ("[project]\ndependencies = []\n[tool]\nuv = 1\n", "`tool.uv` must be a table"),
    ],
)
def test_a_broken_project_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(GymError) as caught:
        server_requirements(tmp_path)
    assert message in caught.value.message
    assert caught.value.place is not None and caught.value.place.file == str(tmp_path / "pyproject.toml")
