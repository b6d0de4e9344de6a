"""Whether there is a terminal, what is left of it after every kind of end, and a workbench whose terminal goes away."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from gym_tui.terminal import refusal
from tests.conftest import Gym
from tests.terminal import GYM, Terminal, terminal

pytestmark = pytest.mark.slow

TUI = (*GYM, "tui")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "streams", "says"),
    [
        ({"TERM": "xterm"}, (Screen(), Screen(), Screen()), None),
        ({"TERM": "xterm"}, (io.StringIO(), Screen(), Screen()), "standard input is none"),
        ({"TERM": "xterm"}, (Screen(), io.StringIO(), Screen()), "standard output is none"),
        ({"TERM": "xterm"}, (Screen(), Screen(), None), "standard error is none"),
        ({"TERM": "dumb"}, (Screen(), Screen(), Screen()), "TERM=dumb"),
        ({}, (Screen(), Screen(), Screen()), "TERM is not set"),
    ],
)
def test_refusal(environment: Mapping[str, str], streams: tuple[io.StringIO | None, ...], says: str | None) -> None:
    reason = refusal(environment, *streams)
    if says is None:
        assert reason is None
    else:
        assert reason is not None and says in reason and "gym list runs" in reason and "\n" not in reason


def test_without_a_terminal_it_refuses_at_once_and_names_plain_commands(gym: Gym) -> None:
    began = os.times()
    done = gym.run("tui")
    used = os.times().children_user - began.children_user
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for command in ("gym list runs", "gym list benchmarks", "gym eval run"):
        assert command in done.stderr
    assert used < 1.0, "Textual was imported for nothing"


def test_a_refusal_does_not_import_textual(gym: Gym) -> None:
    code = "import sys; from backend.cli.main import main; main(['tui']); print([m for m in ('textual', 'rich', 'asyncio') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gym.cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30
    )
    assert done.stdout.strip() in ("[]", "['asyncio']")


def test_what_is_imported_before_the_first_picture() -> None:
    code = (
        "import sys; import gym_tui.command, gym_tui.app, gym_tui.start, screens.results.screen;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    heavy = {
        "pydantic",
        "hydra",
        "omegaconf",
        "fastapi",
        "aiohttp",
        "httpx",
        "uvicorn",
        "openai",
        "ray",
        "psutil",
        "markdown_it",
        "pygments",
    }
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--screen", "reslts"), "Did you mean `results`?"),
        (("--theme", "gym-drak"), "Did you mean `gym-dark`?"),
        (("nowhere",), "nowhere"),
        (("--theme", "[/red]"), "there is no theme [/red]"),
    ],
)
def test_wrong_words_are_told_before_anything_is_drawn(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    with terminal((*TUI, *words), tmp_path) as screen:
        code = screen.end(30)
    assert code in (1, 2)
    assert says in screen.text()
    assert "\x1b[?1049h" not in screen.output.decode()
    assert screen.text().count("Error:") == 1


def test_a_wrong_theme_of_the_settings_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "home" / "config" / "workbench.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('theme = "gym-drak"')
    with terminal(TUI, tmp_path, {"GYM_TUI_HOME": str(tmp_path / "home")}) as screen:
        code = screen.end(30)
    assert code in (1, 2)
    assert "workbench.toml" in screen.text() and "Did you mean `gym-dark`?" in screen.text()


def assert_left_as_found(screen: Terminal) -> None:
    assert screen.modes() == {}, "modes are left switched on"
    assert not screen.line_settings_changed()
    assert screen.keys_are_plain()
    assert "Traceback" not in screen.text()


@pytest.mark.parametrize(
    ("how", "code"),
    [("q", 0), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGQUIT, 143)],
    ids=["quit", "interrupt", "terminate", "hangup", "quit signal"],
)
def test_the_terminal_is_left_as_it_was(tmp_path: Path, how: str | signal.Signals, code: int) -> None:
    with terminal(TUI, tmp_path) as screen:
        screen.wait_for("[7 Results]")
        assert screen.modes(), "nothing was switched on"
        assert screen.line_settings_changed()
        if isinstance(how, str):
            screen.send(how)
        else:
            os.kill(screen.process.pid, how)
        assert screen.end() == code
        assert_left_as_found(screen)


def test_it_goes_on_after_stops_that_nobody_can_catch(tmp_path: Path) -> None:
    with terminal(TUI, tmp_path) as screen:
        screen.wait_for("[7 Results]")
        for _ in range(5):
            os.kill(screen.process.pid, signal.SIGSTOP)
            os.kill(screen.process.pid, signal.SIGCONT)
            screen.wait_for("[7 Results]")
        screen.send("1")
        screen.wait_for("[1 Catalog]")
        screen.send("q")
        assert screen.end() == 0
        assert_left_as_found(screen)


def test_two_signals_end_it_at_once(tmp_path: Path) -> None:
    with terminal(TUI, tmp_path) as screen:
        screen.wait_for("[7 Results]")
        os.kill(screen.process.pid, signal.SIGTERM)
        os.kill(screen.process.pid, signal.SIGINT)
        assert screen.end() in (143, 130)
        assert_left_as_found(screen)


def test_a_closed_terminal_ends_it_without_burning_time(tmp_path: Path) -> None:
    with terminal(TUI, tmp_path) as screen:
        screen.wait_for("[7 Results]")
        process = psutil.Process(screen.process.pid)
        before = sum(process.cpu_times()[:2])
        os.close(screen.master)
        began = time.monotonic()
        used = before
        while screen.process.poll() is None and time.monotonic() - began < 10:
            try:
                used = sum(process.cpu_times()[:2])
            except psutil.Error:
                pass
            time.sleep(0.02)
        assert screen.process.poll() == 143
        assert time.monotonic() - began < 5
        assert used - before < 1.5
        screen.master = os.open(os.devnull, os.O_RDWR)


def test_a_terminal_that_goes_without_a_signal_ends_it_too(tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); from backend.cli.main import main; sys.exit(main(['tui']))"
    with terminal((sys.executable, "-c", code), tmp_path) as screen:
        screen.wait_for("[7 Results]")
        os.close(screen.master)
        assert screen.process.wait(10) == 143
        screen.master = os.open(os.devnull, os.O_RDWR)


FAULTY = """
import sys
from pathlib import Path
from backend.cli.main import main
import screens.results.screen as results

class Faulty(results.ResultsScreen):
    def on_key(self, event):
        if event.key == "f8":
            raise ValueError("nothing [/red] at https://me:abcdefghijklmnop@host/")
    def action_zoom(self):
        raise ValueError("an action fails")

results.ResultsScreen = Faulty
from gym_tui import app
original = app.WorkbenchApp.on_mount
if "--in-app" in sys.argv:
    sys.argv.remove("--in-app")
    def on_mount(self):
        original(self)
        self.call_later(self.nothing_of_that_name)
    def nothing(self):
        raise ValueError("the application itself fails")
    app.WorkbenchApp.nothing_of_that_name = nothing
    app.WorkbenchApp.on_mount = on_mount
sys.exit(main(["tui", *sys.argv[1:]]))
"""


@pytest.fixture
def faulty(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "faulty.py").write_text(FAULTY)
    return (sys.executable, str(tmp_path / "faulty.py"))


@pytest.mark.parametrize("key", ["\x1b[19~", "z"], ids=["handler", "action"])
def test_a_fault_opens_a_window_and_leaves_with_one_line(tmp_path: Path, faulty: tuple[str, str], key: str) -> None:
    with terminal(faulty, tmp_path, {"GYM_TUI_HOME": str(tmp_path / "home")}) as screen:
        screen.wait_for("[7 Results]")
        screen.send(key)
        screen.wait_for("y copies this")
        assert "A fault of the workbench" in screen.text()
        screen.send("q")
        assert screen.end() == 1
        assert_left_as_found(screen)
    last = screen.text().rstrip().splitlines()[-1]
    assert "ValueError" in last and "the details are in" in last
    report = Path(last.rpartition("the details are in ")[2])
    assert "Traceback" in report.read_text()
    assert "abcdefghijklmnop" not in report.read_text()
    assert report.stat().st_mode & 0o077 == 0


def test_after_a_fault_the_screen_can_be_opened_anew(tmp_path: Path, faulty: tuple[str, str]) -> None:
    with terminal(faulty, tmp_path, {"GYM_TUI_HOME": str(tmp_path / "home")}) as screen:
        screen.wait_for("[7 Results]")
        screen.send("\x1b[19~")
        screen.wait_for("y copies this")
        screen.send("r")
        screen.wait_for("[7 Results]")
        screen.send("?")
        screen.wait_for("WHAT IT DOES")
        screen.send("\x1b")
        time.sleep(0.3)
        screen.send("q")
        assert screen.end() == 0
        assert_left_as_found(screen)


def test_a_fault_of_the_application_itself_ends_it_with_one_line(tmp_path: Path, faulty: tuple[str, str]) -> None:
    with terminal((*faulty, "--in-app"), tmp_path, {"GYM_TUI_HOME": str(tmp_path / "home")}) as screen:
        assert screen.end(30) == 1
        assert_left_as_found(screen)
    assert "the application itself fails; the details are in" in screen.text()


BUSY = """
import sys, time
from backend.cli.main import main
import screens.results.screen as results

class Busy(results.ResultsScreen):
    def on_mount(self):
        for name in ("one", "two", "three"):
            self.background.start(name, lambda _reporter: time.sleep(60), done=print, failed=print)
        self.background.start("four", follow, done=print, failed=print, endless=True)

def follow(reporter):
    while reporter.wait(0.1):
        pass

results.ResultsScreen = Busy
sys.exit(main(["tui"]))
"""


def test_quitting_with_background_work_is_quick_and_silent(tmp_path: Path) -> None:
    """Three workers that do not listen, one that does; the limit leaves room for a busy machine."""
    (tmp_path / "busy.py").write_text(BUSY)
    with terminal((sys.executable, str(tmp_path / "busy.py")), tmp_path) as screen:
        screen.wait_for("[7 Results]")
        began = time.monotonic()
        screen.send("q")
        assert screen.end() == 0
        assert time.monotonic() - began < 4
        assert_left_as_found(screen)
    after = screen.output.rpartition(b"\x1b[?1049l")[2]
    assert not Terminal(screen.process, -1, [], after).text().strip()


def test_no_mouse_leaves_the_mouse_alone(tmp_path: Path) -> None:
    with terminal((*TUI, "--no-mouse"), tmp_path) as screen:
        screen.wait_for("[7 Results]")
        assert not {"1000", "1003", "1006"} & screen.modes().keys()
        screen.send("q")
        assert screen.end() == 0


def test_jobs_get_the_environment_of_the_user(tmp_path: Path) -> None:
    """NO_COLOR reaches the child, and the workbench itself draws without colours, but with a cursor."""
    with terminal(TUI, tmp_path, {"NO_COLOR": "1", "GYM_TUI_HOME": str(tmp_path / "home")}) as screen:
        screen.wait_for("[7 Results]")
        environment = psutil.Process(screen.process.pid).environ()
        assert environment["NO_COLOR"] == "1"
        screen.send(":list runs --json\r")
        screen.wait_for("done", 30)
        screen.send("q")
        assert screen.end() == 0
    record = json.loads(next((tmp_path / "home" / "state" / "jobs").glob("*.json")).read_text())
    assert record["words"] == ["list", "runs", "--json"] and record["code"] == 0
