"""`gym env packages`."""

from __future__ import annotations

from backend.cli.component_choice import chosen_component, settings_config
from backend.cli.console import print_json, say
from backend.cli.parser import Parsed
from backend.errors import ExitCode, UsageError
from backend.servers.environments.packages import ListedEnvironment, environments_of, installed_packages, list_text
from backend.servers.environments.preparation import settings_from

_RULE = "-" * 72


def run(parsed: Parsed) -> int:
    """List the packages of a server's environment; 1 when it has not been built."""
    config = settings_config(parsed)
    request = chosen_component(parsed, config)
    if request is None:
        raise UsageError(
            "missing required configuration: entrypoint",
            hint="name the server: --resources-server NAME, or +entrypoint=responses_api_agents/NAME",
        )
    form = "json" if parsed.json else config.get("format")
    outdated = "outdated" in parsed.values or bool(config.get("outdated"))
    environments = environments_of(request, settings_from(config.tree, config.roots))
    name = request.names[0]
    if not environments:
        say(f"{name} needs an environment of its own, and none has been built yet.")
        say("Build it with: gym env prefetch, and the selectors of a configuration that uses it")
        say("or start that configuration once: gym env start")
        return ExitCode.BAD_INPUT
    if form == "json":
        print_json(installed_packages(environments, outdated=outdated))
    else:
        _show(name, environments, None if form is None else str(form), outdated=outdated)
    return ExitCode.OK


def _show(name: str, environments: list[ListedEnvironment], form: str | None, *, outdated: bool) -> None:
    for environment in environments:
        text = list_text(environment, form=form, outdated=outdated).rstrip("\n")
        if form is None:
            say(f"Packages for {name}")
            say(f"Environment: {environment.folder}{' (shared with the gym command)' if environment.is_own else ''}")
            say(_RULE)
        if text:
            say(text)
