"""What the bundled environments do with answers that look like programs: they are text, whatever they say."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from nemo_gym.base_resources_server import SimpleResourcesServer
from tests.component_servers import call, client_of, judged, make_server, message
from tests.conftest import ROOT

SERVERS = sorted(path.parents[1].name for path in (ROOT / "resources_servers").glob("*/data/example.jsonl"))
PROGRAMS = {
    "import": "__import__('pathlib').Path('MARKER').touch()",
    "power": "9**9**9",
    "boxed power": "\\boxed{9**9**9}",
    "answer": "Answer: __import__('pathlib').Path('MARKER').touch()",
    "brackets": "Answer: " + "(" * 50_000,
    "boxes": "\\boxed{" * 20_000,
    "digits": "9" * 100_000,
    "templates": "{{ ''.__class__ }} ${oc.env:PATH} $(touch MARKER) `touch MARKER`; !!python/object/apply:os.system ['touch MARKER']",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("name", SERVERS)
async def test_an_answer_is_never_run(name: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"resources_servers.{name}.app")
    (server_class,) = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, SimpleResourcesServer) and kind.__module__ == module.__name__
    ]
    row = json.loads((ROOT / "resources_servers" / name / "data" / "example.jsonl").read_text().splitlines()[0])
    tools = [tool["name"] for tool in row["responses_create_params"].get("tools", [])]
    calls = [call(tool, arguments) for tool in tools for arguments in (program, json.dumps({"city": program, "values": program}))]
    body: dict[str, Any] = {**row, **judged(*calls, message(program)), "responses_create_params": row["responses_create_params"]}
    config = {"grading_mode": "strict_single_letter_boxed"} if name == "mcqa" else {}
    async with client_of(make_server(server_class, config)) as client, asyncio.timeout(60):
        started = await client.post("/reset" if name.endswith("gymnasium") else "/seed_session", json=row)
        assert started.status_code == 200, started.text
        answer = await client.post("/step" if name.endswith("gymnasium") else "/verify", json=body)
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json()["reward"], float)
    assert not list(tmp_path.iterdir())
