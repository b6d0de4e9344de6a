"""Which screens there are. Each is imported when it is opened for the first time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from screens.widgets.key_table import key_named
from screens.widgets.workbench_screen import WorkbenchScreen


@dataclass(frozen=True, slots=True)
class ScreenEntry:
    """One screen: its name, what its tab says, where its class is, and what it is for."""

    name: str
    title: str
    module: str
    class_name: str
    summary: str

    @property
    def digit(self) -> str:
        """The key that opens it, unless it was rebound."""
        return key_named(f"app.{self.name}").keys.split(",")[0]

    def factory(self) -> Callable[[], WorkbenchScreen]:
        """Makes the screen."""

        def make() -> WorkbenchScreen:
            screen: WorkbenchScreen = getattr(import_module(self.module), self.class_name)()
            return screen

        return make


SCREENS = (
    ScreenEntry("catalog", "Catalog", "screens.catalog.screen", "CatalogScreen", "find components, see what they need"),
    ScreenEntry("config", "Config", "screens.config.screen", "ConfigScreen", "what will run, and who said so"),
    ScreenEntry("servers", "Servers", "screens.servers.screen", "ServersScreen", "the servers of this machine, and their logs"),
    ScreenEntry("rollouts", "Rollouts", "screens.rollouts.screen", "RolloutsScreen", "follow a run as it goes"),
    ScreenEntry("viewer", "Viewer", "screens.viewer.screen", "ViewerScreen", "read any rollout"),
    ScreenEntry("results", "Results", "screens.results.screen", "ResultsScreen", "the runs below a folder"),
)


def screen_named(name: str) -> ScreenEntry | None:
    """The screen with a name."""
    return next((entry for entry in SCREENS if entry.name == name), None)
