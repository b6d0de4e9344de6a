from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.errors import GymError, Place
from backend.servers.environments.requirement_lines import (
    RequirementLines,
    names_this_project,
    parse_requirement,
    read_requirements,
)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    folder = tmp_path / "resources_servers" / "tiny"
    folder.mkdir(parents=True)
    return folder


def read(server: Path, text: str) -> RequirementLines:
    (server / "requirements.txt").write_text(text)
    return read_requirements(server / "requirements.txt")


def texts(found: RequirementLines) -> list[str]:
    return [line.for_installer() for line in found.lines]


def test_comments_blanks_and_continued_lines(server: Path) -> None:
    found = read(server, "\ufeff# head\n\nscipy>=1.11   # for statistics\nnumpy>=1.26, \\\n  <3\nhttps://host/a#egg=a\ntail")
    assert texts(found) == ["scipy>=1.11", "numpy>=1.26,   <3", "https://host/a#egg=a", "tail"]
    assert [line.place.line for line in found.lines] == [3, 4, 6, 7]
    assert [line.is_source for line in found.lines] == [False, False, True, False]


@pytest.mark.parametrize(
    "line",
    [
        "nemo-gym",
        "nemo_gym==0.6.0",
        "NeMo-Gym[dev,sandbox]>=0.5",
        "-e nemo-gym[dev] @ ../../",
        "-e nemo-gym[dev] @ ../../../",
        "--editable=nemo-gym @ ../..",
        "nemo-gym @ git+https://github.com/NVIDIA-NeMo/Gym.git@main",
        "nemo.gym ; python_version >= '3.11'",
        "gym-tui[compat]",
        "-e ../../",
    ],
)
def test_the_line_that_names_this_project_is_never_installed(server: Path, line: str) -> None:
    found = read(server, f"{line}\n")
    assert found.lines == [] and found.names_this_project


@pytest.mark.parametrize("text", ["nemo-gym-extras", "nemo", "gym", "nemo_gymnasium==1.0"])
def test_similar_names_are_other_projects(text: str) -> None:
    assert not names_this_project(text)


def test_lines_that_leave_the_component_count_only_in_a_checkout(server: Path) -> None:
    (server / ".." / ".." / "mylib").mkdir()
    text = "-e ../../mylib\nscipy\n"
    assert texts(read(server, text)) == ["scipy"]
    project = server / ".." / ".." / "pyproject.toml"
    project.write_text('[project]\nname = "my-own"\n')
    assert texts(read(server, text)) == [f"-e {server.parent.parent / 'mylib'}", "scipy"]
    assert texts(read(server, "-e ../../\n")) == [f"-e {server.parent.parent}"]
    project.write_text('[project]\nname = "nemo-gym"\n')
    assert texts(read(server, "-e ../../\n-e ../..[dev]\n")) == []


def test_nested_files_constraints_and_options(server: Path) -> None:
    (server / "more").mkdir()
    (server / "more" / "base.txt").write_text("attrs\n-r deeper.txt\n./local\n")
    (server / "more" / "deeper.txt").write_text("idna==3.1\n")
    (server / "more" / "local").mkdir()
    (server / "limits.txt").write_text("attrs<30\n")
    (server / "wheels").mkdir()
    found = read(
        server,
        "-r more/base.txt\n-climits.txt\n--index-url=https://a/simple\n--extra-index-url https://b/simple\n-f wheels\n--pre\n"
        "--prefer-binary\n--no-index\n",
    )
    assert texts(found) == ["attrs", "idna==3.1", str(server / "more" / "local")]
    assert [str(line.place) for line in found.lines][1] == f"{server / 'more' / 'deeper.txt'}:1"
    assert [line.text for line in found.constraints] == ["attrs<30"]
    assert found.options == [
        ("--index-url", "https://a/simple"),
        ("--extra-index-url", "https://b/simple"),
        ("--find-links", str(server / "wheels")),
        ("--pre", ""),
        ("--no-index", ""),
    ]


def test_paths_become_absolute_and_keep_extras_and_markers(server: Path) -> None:
    (server / "own lib").mkdir()
    wheel = server / "own lib" / "a-1.0-py3-none-any.whl"
    wheel.touch()
    found = read(server, f"-e ./own lib[x,y]\na @ ./own lib/{wheel.name} ; sys_platform == 'linux'\nb @ {wheel.as_uri()}\n")
    assert texts(found) == [
        f"-e {server / 'own lib'}[x,y]",
        f"a @ {wheel.as_uri()} ; sys_platform == 'linux'",
        f"b @ {wheel.as_uri()}",
    ]
    assert [line.path for line in found.lines] == [server / "own lib", wheel, wheel]


def test_hashes_stay_behind_their_requirement(server: Path) -> None:
    found = read(server, "idna==3.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n--require-hashes\n")
    assert texts(found) == ["idna==3.1 --hash=sha256:aa --hash=sha256:bb"]
    assert found.lines[0].text == "idna==3.1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scipy\n--no-such-option x\n", "requirements.txt:2: `--no-such-option` is not an option"),
        ("\n-r gone.txt\n", "requirements.txt:2: the included file"),
        ("--index-url\n", "requirements.txt:1: `--index-url` needs a value"),
        ("--no-index yes\n", "requirements.txt:1: `--no-index` takes no value"),
        ("-r requirements.txt\n", "requirements.txt includes itself"),
        ("./gone\n", "which does not exist"),
        ("scipy --target=/tmp\n", "requirements.txt:1: `--target` cannot stand behind a requirement"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(server: Path, text: str, message: str) -> None:
    with pytest.raises(GymError) as caught:
        read(server, text)
    assert message in str(caught.value)


def test_a_file_that_is_no_text(server: Path) -> None:
    (server / "requirements.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GymError, match="no UTF-8 text"):
        read_requirements(server / "requirements.txt")


def test_requirements_of_a_project_file(tmp_path: Path) -> None:
    place = Place("pyproject.toml", 3)
    assert parse_requirement("nemo-gym[dev]", place, tmp_path) is None
    line = parse_requirement(" scipy >= 1 ; extra == 'x' ", place, tmp_path)
    assert line is not None and line.text == "scipy >= 1 ; extra == 'x'" and line.place is place


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda name: not names_this_project(name))
LINES = st.lists(st.tuples(NAMES, st.sampled_from(["", "==1.0", ">=2,<3", "[x]~=1.1", " ; python_version>'3'"])), max_size=8)


@given(lines=LINES, decoration=st.lists(st.sampled_from(["", "# remark", "   ", "\t# -r gone.txt"]), min_size=9, max_size=9))
def test_every_requirement_is_found_at_its_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str]], decoration: list[str]
) -> None:
    path = tmp_path_factory.mktemp("server") / "requirements.txt"
    rows: list[str] = []
    expected = []
    for (name, rest), ornament in zip(lines, decoration, strict=False):
        rows.append(ornament)
        rows.append(f"{name}{rest}  # why")
        expected.append((f"{name}{rest}", len(rows)))
    path.write_text("\n".join(rows))
    assert [(line.text, line.place.line) for line in read_requirements(path).lines] == expected


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
@example("~nobody-of-this-name/package\n")
@example("--find-links ~nobody-of-this-name/wheels\n")
def test_no_text_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("server") / "requirements.txt"
    path.write_text(text, encoding="utf-8")
    try:
        read_requirements(path)
    except GymError as error:
        assert str(path.parent) in str(error)
