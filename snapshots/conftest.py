"""Pictures of screens, each compared with the one that was accepted, and with the lines it must show.

`pytest snapshots --snapshot-update` accepts new pictures; look at each of them before. A picture that no test makes any more fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePath
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.workbench import lines, settle, still_terminal

__all__ = ["still_terminal"]

Steps = Callable[[Pilot[Any]], Awaitable[None]]
Picture = Callable[..., bool]


@pytest.fixture
def picture(snap_compare: Callable[..., bool], still_terminal: None) -> Picture:
    """Makes a picture: runs the app, takes `steps`, waits until it is settled, checks the lines, compares the picture.

    With `idle=False` the app may be at work for ever: that is how a pane that loads is pictured.
    """

    def take(
        app: App[Any],
        size: tuple[int, int],
        shows: Sequence[str],
        *,
        steps: Steps | None = None,
        until: Callable[[App[Any]], bool] = lambda _app: True,
        hides: Sequence[str] = (),
        idle: bool = True,
    ) -> bool:
        seen: list[str] = []

        async def before(pilot: Pilot[Any]) -> None:
            await settle(pilot, lambda: until(app), idle=idle)
            if steps is not None:
                await steps(pilot)
                await settle(pilot, lambda: until(app), idle=idle)
            seen.extend(lines(pilot.app))

        same = snap_compare(app, terminal_size=size, run_before=before)
        text = "\n".join(seen)
        missing = [wanted for wanted in shows if wanted not in text]
        assert not missing, f"not on screen: {missing}\n{text}"
        unwanted = [wanted for wanted in hides if wanted in text]
        assert not unwanted, f"on screen: {unwanted}\n{text}"
        assert same, f"the picture differs from the accepted one; on screen:\n{text}"
        return True

    return take


@pytest.fixture(autouse=True)
def no_local_paths(still_terminal: None, monkeypatch: pytest.MonkeyPatch, tmp_path: PurePath) -> None:
    """Pictures show paths below the working directory, which is the test's own."""
    monkeypatch.chdir(Path(tmp_path))
