"""Compares listings, searches and inspections with NeMo Gym 0.6.0 where that is installed; prints what differs, exits 1 if anything does.

    python tests/conformance/compare_catalog.py FOLDER_OF_ITS_COMPONENTS --reference PATH/TO/ITS/gym

Our own bundled components, which its listings cannot have, are left out, and so is the `hides` line of details. Each of its commands
takes some 13 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from backend.catalog.kinds import KINDS
from backend.catalog.listing import list_components
from backend.io.roots import INSTALL_ROOT

GYM = Path(sys.executable).with_name("gym")
COMMANDS = (
    "list benchmarks", "list environments", "list agents", "list models", "list resources-servers",
    "list environments --domain math", "list environments --kind benchmark --status no-manifest", "list environments --licensing MIT",
    "search gpqa", "search mathh", "search gmes", "search judgement", "search benchmarks aime", "search environments reasoning",
    "search agents simple", "search models vllm", "search resources-servers math",
    "list benchmarks gpqa", "list environments gpqa", "list environments blackjack", "list environments resources_servers/mcqa",
    "list environments aalcr", "list environments tau2/configs/tau2", "list agents simple_agent", "list agents anyswe_agent",
    "list environments biomnibench_da",
    "list environments resources_servers/equivalence_rule/lc",
    "list environments hermes_math",
    "list environments speed-bench/config_qualitative", "list benchmarks aime24", "list benchmarks bigcodebench",
    "list agents harbor_agent",
    "list resources-servers jailbreak_detection",
    "list models inference_provider/baseten", "list resources-servers equivalence_rule/lc",
)  # fmt: skip


def output_of(command: list[str], cwd: str) -> Any:
    """The JSON that a command prints; its exit code where it fails."""
    done = subprocess.run([*command, "--json"], cwd=cwd, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.returncode


def comparable(output: Any, folder: str, left_out: set[str]) -> Any:
    """An output without what depends on where it was made."""
    if isinstance(output, list):
        return [entry for entry in output if entry["name"] not in left_out]
    if isinstance(output, dict):
        details = {key: value.replace(folder, "") for key, value in output["details"].items() if key != "hides"}
        return {**output, "details": details}
    return output


def differences(theirs: Any, ours: Any) -> list[str]:
    """Lines that tell how two outputs differ."""
    if theirs == ours and json.dumps(theirs) == json.dumps(ours):
        return []
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return [f"  reference {theirs}", f"  ours      {ours}"]
    by_name = [{(entry.get("kind"), entry["name"]): entry for entry in output} for output in (theirs, ours)]
    lines = [f"  only reference: {name}" for name in by_name[0].keys() - by_name[1].keys()]
    lines += [f"  only ours: {name}" for name in by_name[1].keys() - by_name[0].keys()]
    for name in by_name[0].keys() & by_name[1].keys():
        lines += differences(dict(by_name[0][name]), dict(by_name[1][name]))
    return lines or ["  the order differs"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("components", type=Path)
    parser.add_argument("--reference", required=True)
    arguments = parser.parse_args()
    components = arguments.components.absolute()
    bundled = {entry.name for entry in list_components(KINDS, [INSTALL_ROOT]).entries}
    shipped = {entry.name for entry in list_components(KINDS, [components]).entries}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            ours = output_of([str(GYM), *command.split(), "--search-dir", str(components)], folder)
            theirs = output_of([arguments.reference, *command.split()], folder)
            own_folder = theirs["details"].get("config", theirs["details"].get("path", "")) if isinstance(theirs, dict) else ""
            prefix = own_folder.partition("/site-packages")[0] + "/site-packages"
            lines = differences(comparable(theirs, prefix, set()), comparable(ours, str(components), bundled - shipped))
            different += bool(lines)
            print(f"{'differs' if lines else 'same   '} {command}", *lines, sep="\n", flush=True)
    print(f"{len(COMMANDS) - different} of {len(COMMANDS)} commands give the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
