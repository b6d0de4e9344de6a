"""The warm parent that is begun before the command line is read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from backend.cli import launch
from tests.conftest import COMMAND, ROOT, Gym, processes_of


def warm_parents() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "backend.servers.warm_parent" in child.cmdline()]


def files_of(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(entry))
    return found


@pytest.mark.parametrize("words", [["env", "start"], ["eval", "run", "--benchmark", "mcqa"]])
def test_the_command_takes_what_was_begun(words: list[str]) -> None:
    launch.launch_ahead(words)
    (begun,) = warm_parents()
    link = launch.warm_parent_link()
    assert link.process.pid == begun.pid
    launch.drop_unused()
    assert begun.is_running()
    link.close()
    assert not begun.is_running()


def test_what_no_command_takes_ends() -> None:
    launch.launch_ahead(["env", "start", "--nonsense"])
    (begun,) = warm_parents()
    launch.drop_unused()
    assert not begun.is_running()


@pytest.mark.parametrize(
    "words", [[], ["env"], ["env", "status"], ["env", "start", "--help"], ["eval", "run", "-h"], ["eval", "run", "--no-serve"]]
)
def test_commands_without_servers_begin_nothing(words: list[str]) -> None:
    launch.launch_ahead(words)
    assert warm_parents() == []


def test_a_command_that_was_not_foreseen_begins_its_own() -> None:
    link = launch.warm_parent_link()
    assert [link.process.pid] == [process.pid for process in warm_parents()]
    link.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux for another process' files")
def test_it_holds_nothing_that_the_command_has_open(tmp_path: Path) -> None:
    """Whoever waits for the end of a pipe that the command had inherited is not to wait for servers."""
    stray = os.open(tmp_path / "stray", os.O_CREAT | os.O_RDONLY)
    os.set_inheritable(stray, True)
    link = launch.warm_parent_link()
    deadline = time.monotonic() + 20
    while str(tmp_path / "stray") in files_of(link.process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert os.get_inheritable(stray)
    link.close()
    os.close(stray)


def test_a_wrong_command_line_leaves_nothing(gym: Gym) -> None:
    result = gym.run("env", "start", "--nonsense")
    assert result.returncode == 2 and "--nonsense" in result.stderr
    assert processes_of(str(gym.cwd)) == []


@pytest.mark.parametrize("limit", [6, 8, 10, 12])
def test_a_system_that_gives_no_more_files_is_told(gym: Gym, limit: int) -> None:
    limited = ["sh", "-c", f'ulimit -n {limit} && exec "$@"', "sh", *COMMAND, "env", "start", "--config", "tiny.yaml"]
    result = subprocess.run(limited, cwd=gym.cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (1, "")
    assert "Too many open files" in result.stderr and "ulimit -n" in result.stderr
    assert "Traceback" not in result.stderr and "event loop" not in result.stderr


def test_servers_have_the_environment_of_the_command(gym: Gym, tiny_tree: Path, free_port: int) -> None:
    """What the command has set since the warm parent was begun, too: folders to search, and to import from."""
    app = tiny_tree / "resources_servers" / "tiny" / "app.py"
    app.write_text(
        app.read_text().replace(
            'print("tiny is starting")',
            "import os\n    from resources_servers.elsewhere import words\n"
            '    print("roots", os.environ["NEMO_GYM_EXTRA_ROOTS"], words.__file__, flush=True)',
        )
    )
    elsewhere = gym.cwd / "more" / "resources_servers" / "elsewhere"
    elsewhere.mkdir(parents=True)
    (elsewhere / "words.py").touch()
    gym.start("env", "start", "--config", "tiny.yaml", "--search-dir", "more", f"++head_server.port={free_port}")
    assert f"(tiny_a) roots {gym.cwd}/more {elsewhere}/words.py\n" in gym.wait_for("All 3 / 3 servers ready!")
