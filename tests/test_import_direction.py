"""The layers of ARCHITECTURE.md: who may import whom, read from the source and checked in a running interpreter."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LEVELS = [
    {"backend.errors", "backend.events", "backend.package_info"},
    {"backend.io"},
    {"backend.config", "backend.responses"},
    {"backend.catalog", "backend.metrics", "backend.health", "backend.datasets"},
    {"backend.servers"},
    {"backend.rollouts", "backend.workloads"},
    {"backend.cli"},
    {"screens"},
    {"gym_tui"},
]
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
COMPONENT_ROOTS = ("resources_servers", "responses_api_agents", "responses_api_models", "benchmarks", "environments")
HEAVY = {
    "fastapi",
    "uvicorn",
    "aiohttp",
    "hydra",
    "omegaconf",
    "ray",
    "textual",
    "openai",
    "httpx",
    "pydantic",
    "rich",
    "asyncio",
}


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "tests" not in path.relative_to(ROOT).parts)


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] == "backend":
        return ".".join(parts[:2]) if len(parts) > 1 else None
    return parts[0] if parts[0] in ("screens", "gym_tui") else None


def test_no_arrow_points_up_or_sideways() -> None:
    wrong = []
    for path in python_files("backend", "screens", "gym_tui"):
        own = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        if own is None:
            continue
        assert own in LEVEL_OF, f"{own} is in no level"
        for module in imported_modules(path):
            other = room_of(module)
            if other and other != own and LEVEL_OF.get(other, 99) >= LEVEL_OF[own]:
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert wrong == []


def test_backend_knows_no_screen_and_no_namespace() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files("backend")
        for module in imported_modules(path)
        if module.split(".")[0] in ("textual", "screens", "gym_tui")
    ]
    assert wrong == []


def test_components_import_the_namespace_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files(*COMPONENT_ROOTS)
        for module in imported_modules(path)
        if module.split(".")[0] in ("backend", "screens", "gym_tui")
    ]
    assert wrong == []


def test_component_roots_are_namespace_packages() -> None:
    assert [root for root in COMPONENT_ROOTS if (ROOT / root / "__init__.py").exists()] == []


def loaded_by(statement: str) -> set[str]:
    code = f"import json, sys\n{statement}\nprint('MODULES' + json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(json.loads(result.stdout.rpartition("MODULES")[2]))


def test_help_loads_the_parser_only() -> None:
    modules = loaded_by("from backend.cli.main import main; main(['--help'])")
    assert modules & (HEAVY | {"yaml", "orjson", "importlib.metadata"}) == set()
    assert len(modules) < 120


@pytest.mark.parametrize(
    "words", [["list", "benchmarks"], ["list", "benchmarks", "--json"], ["list", "benchmarks", "first_steps"]]
)
def test_listing_loads_no_web_stack(words: list[str]) -> None:
    assert loaded_by(f"from backend.cli.main import main; main({words!r})") & (HEAVY - {"rich", "asyncio"}) == set()


def test_importing_the_namespace_loads_no_server() -> None:
    assert loaded_by("import nemo_gym") & HEAVY == set()


def test_status_loads_no_http_stack() -> None:
    modules = loaded_by("from backend.cli.main import main; main(['env', 'status'])")
    assert modules & (HEAVY - {"asyncio"}) == set()


def test_a_run_without_a_prompt_loads_no_models_of_data() -> None:
    modules = loaded_by("import backend.rollouts.evaluate")
    assert modules & {"pydantic", "fastapi", "uvicorn", "hydra", "omegaconf", "ray", "rich", "httpx"} == set()


def test_the_warm_parent_and_the_head_server_load_nothing_that_few_servers_need() -> None:
    statement = (
        "from backend.servers import warm_parent; warm_parent._import_stack()\n"
        "from backend.config.global_config import set_global_config_dict; set_global_config_dict({'a': {'b': 1}})\n"
        "from backend.servers.head_server import head_application; head_application({}, [])"
    )
    assert loaded_by(statement) & {"omegaconf", "antlr4", "yaml", "pydantic.v1", "ray", "hydra", "httpx", "rich"} == set()
