"""`gym env test`: the tests of one component, or of all."""

from __future__ import annotations

from typing import Any

from backend.cli.component_choice import chosen_component, settings_config
from backend.cli.console import say, warn
from backend.cli.parser import Parsed
from backend.cli.render_servers import render_server_event
from backend.cli.running import run_operation
from backend.config.resolution import ResolvedConfig
from backend.errors import ExitCode, GymError, UsageError
from backend.events import Event
from backend.servers.environments.environment import EnvironmentOutput, EnvironmentSettings
from backend.servers.environments.preparation import settings_from
from backend.servers.environments.testing import (
    Component,
    ComponentTested,
    ComponentTesting,
    TestSelection,
    all_components,
    run_component_tests,
)


def run(parsed: Parsed) -> int:
    """Run pytest; its exit code for one component, 1 when any of all failed."""
    config = settings_config(parsed)
    request = chosen_component(parsed, config)
    if (request is not None) == ("all" in parsed.values):
        raise UsageError(
            "--all and --resources-server exclude each other" if request else "nothing to test is named",
            hint="name one: --resources-server NAME, +entrypoint=responses_api_agents/NAME, or --all",
        )
    settings = settings_from(config.tree, config.roots)
    if request is None:
        return _test_all(config, settings)
    component = Component(request.kind, request.implementation, request.folder)
    code, results = _test([component], settings, with_data=_truth(config, "should_validate_data"), config=config)
    return code or results[0].code or (ExitCode.BAD_INPUT if results[0].problems else ExitCode.OK)


def _test_all(config: ResolvedConfig, settings: EnvironmentSettings) -> int:
    selection = all_components(
        config.roots, num_shards=_count(config, "num_shards", 1), shard_index=_count(config, "shard_index", 0)
    )
    say(f"Testing {len(selection.components)} components.")
    code, results = _test(selection.components, settings, with_data=True, config=config)
    _report(selection, results)
    if code:
        return code
    mismatch = bool(selection.left_out) and _truth(config, "fail_on_total_and_test_mismatch")
    if mismatch:
        warn(f"these have no README.md and were not tested: {', '.join(selection.left_out)}")
    bad = any(result.outcome in ("failed", "missing") or result.problems for result in results)
    return ExitCode.BAD_INPUT if bad or mismatch else ExitCode.OK


def _test(
    components: list[Component] | tuple[Component, ...], settings: EnvironmentSettings, *, with_data: bool, config: ResolvedConfig
) -> tuple[int, list[ComponentTested]]:
    """The exit code for an interruption, else 0, and what came out for each component."""
    results: list[ComponentTested] = []
    delete = _truth(config, "delete_venvs_after_each_test")

    def render(event: Event) -> None:
        if isinstance(event, ComponentTesting):
            say(f"[{event.number}/{event.total}] {event.component}: {event.folder}")
        elif isinstance(event, ComponentTested):
            results.append(event)
            for problem in filter(None, (event.error, *event.problems)):
                warn(f"{event.component}: {problem}")
        elif isinstance(event, EnvironmentOutput):
            say(f"({event.server}) {event.line}")
        else:
            render_server_event(event)

    code = run_operation(
        lambda: run_component_tests(components, settings, with_data=with_data, delete_environments=delete), render
    )
    return code, results


def _report(selection: TestSelection, results: list[ComponentTested]) -> None:
    say()
    for outcome, heading in (
        ("passed", "Passed"),
        ("failed", "Failed"),
        ("missing", "Without tests"),
        ("unrecognised", "Ended in another way"),
    ):
        names = [result.component for result in results if result.outcome == outcome]
        say(f"{heading}: {len(names)}")
        if outcome != "passed":
            for name in names:
                say(f"  {name}")
    broken = [result.component for result in results if result.problems]
    say(f"With wrong example data: {len(broken)}")
    for name in broken:
        say(f"  {name}")
    say(f"Left out, without a README.md: {len(selection.left_out)}")
    say()
    width = max((len(result.component) for result in results), default=0)
    for result in sorted(results, key=lambda result: -result.seconds):
        say(f"{result.component:<{width}}  {result.seconds:8.1f} s  {result.outcome}")
    say(f"{'Total':<{width}}  {sum(result.seconds for result in results):8.1f} s")


def _truth(config: ResolvedConfig, key: str) -> bool:
    value = config.get(key, False)
    if not isinstance(value, bool | None):
        raise GymError(f"'{key}' must be true or false, not {value!r}", hint=f"++{key}=true")
    return bool(value)


def _count(config: ResolvedConfig, key: str, default: int) -> int:
    value: Any = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise GymError(f"'{key}' must be a whole number, not {value!r}", hint=f"++{key}={default}")
    return value
