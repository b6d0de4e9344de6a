"""`gym env resolve`: the configuration that flags, files and overrides make, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.cli.render_config import entry_json, entry_lines, finding_json, is_telling, jsonable, layer_json, layer_line
from backend.cli.request_building import config_request
from backend.config.findings import Finding
from backend.config.request import ConfigRequest
from backend.config.resolve_view import Entry, ResolvedView, resolve_view
from backend.config.yaml_text import to_yaml
from backend.errors import ExitCode, GymError, did_you_mean


def run(parsed: Parsed) -> int:
    """Print the resolved configuration, masked; 1 where it cannot be used."""
    request = replace(config_request(parsed, warn), stand_in_model="no_model" in parsed.values, check_components=False)
    view = resolve_view(request)
    for finding in view.findings:
        if finding.severity == "warning":
            warn(_one_line(finding))
    if view.error is not None:
        raise view.error
    wanted = parsed.given("key")
    if "provenance" in parsed.values or wanted:
        entries = _entries(view, wanted)
        if parsed.json:
            print_json(_as_json(view, entries))
        else:
            _show_provenance(view, entries)
    elif parsed.json:
        print_json(jsonable(view.tree))
    else:
        say(to_yaml(view.tree))
    return ExitCode.OK


def resolve_request(parsed: Parsed, tell: Callable[[str], None] = warn) -> ConfigRequest:
    """The request of an `env resolve`; remarks on its words go to `tell`."""
    return replace(config_request(parsed, tell), stand_in_model="no_model" in parsed.values, check_components=False)


def _entries(view: ResolvedView, wanted: str | None) -> list[Entry]:
    entries = [entry for entry in view.entries if is_telling(entry)]
    if wanted is None:
        return entries
    found = [entry for entry in entries if wanted.lower() in entry.key.lower()]
    if not found:
        raise GymError(f"no key contains '{wanted}'", hint=did_you_mean(wanted, [entry.key for entry in view.entries]))
    return found


def _show_provenance(view: ResolvedView, entries: list[Entry]) -> None:
    say("# layers, the last one wins; L1 only fills gaps")
    for layer in view.layers:
        say(f"# {layer_line(layer)}")
    say()
    for entry in entries:
        say("\n".join(entry_lines(entry)))


def _as_json(view: ResolvedView, entries: list[Entry]) -> dict[str, object]:
    return {
        "config": jsonable(view.tree),
        "layers": [layer_json(layer) for layer in view.layers],
        "keys": [entry_json(entry) for entry in entries],
        "findings": [finding_json(finding) for finding in view.findings],
    }


def _one_line(finding: Finding) -> str:
    return f"{finding} ({finding.hint})" if finding.hint else str(finding)
