"""Compare the resolution of every configuration file of an installed NeMo Gym with what comes out here.

    .venv/bin/python tests/conformance/compare_resolution.py PATH/TO/ITS/bin/python [--only TEXT] [--show N]

Each file below its component folders is resolved there (one process that forks per file) and here, with the policy settings given and
the openai model's configuration added where the file and what it includes bring no `policy_model`. Where both resolve, the server blocks
must be equal, `host` and `port` aside; where the other one fails, there must be findings here. Exits 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.config.findings import Findings
from backend.config.includes import load_files
from backend.config.nodes import Origin
from backend.config.request import ConfigRequest
from backend.config.resolution import resolve_collecting
from backend.config.schema import POLICY_MODEL, SERVER_TYPES

FOLDERS = ("benchmarks", "environments", "resources_servers", "responses_api_agents", "responses_api_models")
OPENAI_MODEL = "responses_api_models/openai_model/configs/openai_model.yaml"
POLICY = {"policy_base_url": "http://127.0.0.1:9/v1", "policy_api_key": "sk-comparison-only", "policy_model_name": "compared"}
_PLACES = ("host", "port")
_WRONG = ("differ", "fails only here", "fails only there")

DRIVER = (
    f"SERVER_TYPES = {SERVER_TYPES!r}\n"
    + """
import json, os, sys
from omegaconf import OmegaConf
from nemo_gym import PARENT_DIR
from nemo_gym.global_config import GlobalConfigDictParser, GlobalConfigDictParserConfig

def resolved(paths, policy):
    parsed = GlobalConfigDictParser().parse(GlobalConfigDictParserConfig(
        initial_global_config_dict=OmegaConf.create({"config_paths": paths, **policy}),
        skip_load_from_cli=True, skip_load_from_dotenv=True, offline=True,
    ))
    blocks = {key: block for key in parsed if OmegaConf.is_dict(block := parsed[key]) and any(kind in block for kind in SERVER_TYPES)}
    return {key: OmegaConf.to_container(block, resolve=True) for key, block in blocks.items()}

print(json.dumps({"root": str(PARENT_DIR)}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        sys.stdout = sys.stderr = open(os.devnull, "w")
        try:
            answer = {"tree": resolved(request["paths"], request["policy"])}
        except BaseException as error:
            answer = {"error": type(error).__name__ + ": " + str(error)[:2000]}
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(answer, default=str))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    print(text or json.dumps({"error": "no answer"}), flush=True)
"""
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one side makes of a file: server blocks, or what is wrong."""

    blocks: dict[str, Any] | None
    problems: tuple[str, ...] = ()


class Reference:
    """The other resolver in its own interpreter."""

    def __init__(self, python: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [python, "-c", DRIVER],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.root = Path(self._answer()["root"])

    def resolve(self, paths: Sequence[str]) -> Outcome:
        assert self._process.stdin is not None
        print(json.dumps({"paths": list(paths), "policy": POLICY}), file=self._process.stdin, flush=True)
        answer = self._answer()
        if "error" in answer:
            return Outcome(None, (answer["error"],))
        return Outcome(server_blocks(answer["tree"]))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the other interpreter ended; is NeMo Gym installed there?")
        answer: dict[str, Any] = json.loads(line)
        return answer


def resolve_here(paths: Sequence[str], root: Path, folder: Path) -> Outcome:
    """As `Reference.resolve`, by this project."""
    findings = Findings()
    resolved = resolve_collecting(
        ConfigRequest(
            config_paths=tuple(paths),
            initial=POLICY,
            search_dirs=(str(root),),
            cwd=folder,
            read_env_file=False,
            check_components=False,
        ),
        findings,
    )
    if findings.errors or resolved is None:
        return Outcome(None, tuple(str(error) for error in findings.errors))
    return Outcome(server_blocks(resolved.tree))


def server_blocks(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level blocks with a server type, without hosts and ports, in the types that JSON has."""
    blocks = {
        name: block for name, block in tree.items() if isinstance(block, dict) and any(kind in block for kind in SERVER_TYPES)
    }
    for block in blocks.values():
        for kind in SERVER_TYPES:
            for fields in (block.get(kind) or {}).values() if isinstance(block.get(kind), dict) else ():
                if isinstance(fields, dict) and "entrypoint" in fields:
                    for key in _PLACES:
                        fields.pop(key, None)
    copy: dict[str, Any] = json.loads(json.dumps(blocks, default=str))
    return copy


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Where two trees differ, one line each."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            below = f"{path}.{key}" if path else key
            if key not in ours:
                yield f"{below}: only there: {theirs[key]!r}"
            elif key not in theirs:
                yield f"{below}: only here: {ours[key]!r}"
            else:
                yield from differences(theirs[key], ours[key], below)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield f"{path}: there {theirs!r}, here {ours!r}"


def paths_for(entry: str, root: Path) -> list[str]:
    """The file, and the openai model where neither the file nor what it includes defines `policy_model`."""
    files = load_files([(entry, Origin("flag", "--config"))], [root], Findings())
    defined = any(POLICY_MODEL in source.root.value for source in files.sources)
    return [entry] if defined else [entry, OPENAI_MODEL]


def compare(reference: Reference, folder: Path, only: str, *, everything: bool) -> collections.Counter[str]:
    """Resolve all files on both sides, print what differs, and count the outcomes."""
    counts: collections.Counter[str] = collections.Counter()
    files = sorted(path for name in FOLDERS for path in (reference.root / name).rglob("*.yaml"))
    for path in files:
        entry = str(path.relative_to(reference.root))
        if only not in entry:
            continue
        paths = paths_for(entry, reference.root)
        theirs, ours = reference.resolve(paths), resolve_here(paths, reference.root, folder)
        if theirs.blocks is not None and ours.blocks is not None:
            lines = list(differences(theirs.blocks, ours.blocks))
            if list(theirs.blocks) != list(ours.blocks):
                lines.append(f"order: there {list(theirs.blocks)}, here {list(ours.blocks)}")
            outcome = "differ" if lines else "equal"
        elif theirs.blocks is not None:
            lines, outcome = list(ours.problems), "fails only here"
        elif ours.blocks is not None:
            lines, outcome = list(theirs.problems), "fails only there"
        else:
            lines, outcome = [*theirs.problems, *ours.problems], "findings here, failure there"
        counts[outcome] += 1
        if everything or outcome in _WRONG:
            print(f"{entry}: {outcome}", *(f"    {line}" for line in lines[:5]), sep="\n", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="interpreter that has NeMo Gym 0.6.0 installed")
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--all", action="store_true", help="print a line for every file, with what is wrong on either side")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        reference = Reference(arguments.python, Path(name))
        try:
            counts = compare(reference, Path(name), arguments.only, everything=arguments.all)
        finally:
            reference.close()
    for outcome, count in sorted(counts.items()):
        print(f"{count:5} {outcome}")
    print(f"{sum(counts.values())} files in {time.monotonic() - began:.0f} s")
    return 1 if any(counts[outcome] for outcome in _WRONG) else 0


if __name__ == "__main__":
    sys.exit(main())
