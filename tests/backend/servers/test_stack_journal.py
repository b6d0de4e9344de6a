"""How a stack's record follows its events, and what a stack is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_config
from backend.io.homes import state_home
from backend.servers.environments.environment import EnvironmentPreparing, EnvironmentReady
from backend.servers.server_events import ServerEnded, ServerPhase, ServerReady, ServerStarted, StackProgress, StackReady
from backend.servers.stack_journal import StackJournal, StackOwner, record_after, stack_name, used_servers
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stacks import running_stacks

A = StackServer("a", "resources_servers", "mcqa", "http://127.0.0.1:1")
B = StackServer("b", "responses_api_agents", "simple_agent", "http://127.0.0.1:2")
RECORD = StackRecord("id", 1, 1.0, 1.0, (), "", "http://127.0.0.1:3", "starting", "", (A, B))
CONFIG = """
quiz: {resources_servers: {mcqa: {entrypoint: app.py, domain: other}}}
policy_model: {responses_api_models: {openai_model: {entrypoint: app.py}}}
agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: quiz}
      model_server: {type: responses_api_models, name: policy_model}
      also: [{deep: {type: resources_servers, name: quiz}}, {type: resources_servers, name: elsewhere}]
"""


def resolved(folder: Path, path: str = "stack.yaml") -> ResolvedConfig:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(CONFIG.replace(", name: elsewhere", ""))
    return resolve_config(ConfigRequest(config_paths=(path,), cwd=folder, check_components=False))


def test_a_server_s_steps() -> None:
    record = record_after(RECORD, EnvironmentPreparing(("a",), "/venvs/x", ("numpy",)), 10.0)
    assert (record.servers[0].state, record.servers[0].phase, record.servers[0].phase_since) == ("preparing", "preparing", 10.0)
    assert record.servers[1] == B
    record = record_after(record, EnvironmentReady(("a", "b"), "built", "/venvs/x", 3.0), 13.0)
    assert [server.environment for server in record.servers] == ["/venvs/x", "/venvs/x"]
    record = record_after(record, ServerStarted("a", "resources_servers", "mcqa", 4711, A.url), 14.0)
    assert (record.servers[0].pid, record.servers[0].phase, record.servers[0].state) == (4711, "importing", "starting")
    record = record_after(record, ServerPhase("a", "setting up", 4.5), 15.0)
    assert (record.servers[0].phase, record.servers[0].phase_since) == ("setting up", 15.0)
    record = record_after(record, ServerReady("a", 5.0), 16.0)
    assert (record.servers[0].state, record.servers[0].seconds) == ("ready", 5.0)
    record = record_after(record, ServerPhase("a", "setting up", 5.1), 17.0)  # a second worker is late to say so
    assert record.servers[0].phase == "ready"
    record = record_after(record, ServerEnded("a", -9), 18.0)
    assert (record.servers[0].state, record.servers[0].code, record.servers[0].phase) == ("ended", -9, "")


def test_a_stack_becomes_ready_and_progress_changes_nothing() -> None:
    assert record_after(RECORD, StackReady(1.0, ()), 2.0).state == "ready"
    assert record_after(RECORD, StackProgress(1, 2, ("a",)), 2.0) == RECORD


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("benchmarks/riddles/config.yaml", "riddles"),
        ("environments/maze/config.yaml", "maze"),
        ("stack.yaml", "quiz"),
        ("benchmarks.yaml", "quiz"),
    ],
)
def test_names_of_stacks(tmp_path: Path, path: str, name: str) -> None:
    assert stack_name(resolved(tmp_path, path)) == name


def test_what_a_server_uses(tmp_path: Path) -> None:
    config = resolved(tmp_path)
    names = ("quiz", "policy_model", "agent")
    uses = {server.name: used_servers(server, names) for server in config.servers}
    assert uses == {"quiz": (), "policy_model": (), "agent": ("quiz", "policy_model")}


def test_a_journal_from_beginning_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    journal = StackJournal(resolved(tmp_path), StackOwner(("gym", "env", "start", "--model-api-key", "sk-secret-key"), tmp_path))
    journal.begin("http://127.0.0.1:3", (A, B))
    journal.note(ServerReady("b", 1.5))
    (record,) = running_stacks()
    assert (record.id, record.name, record.run, record.state) == (journal.id, "quiz", str(tmp_path), "starting")
    assert record.command == ("gym", "env", "start", "--model-api-key", "****")
    assert [server.state for server in record.servers] == ["starting", "ready"]
    journal.stopping()
    assert running_stacks()[0].state == "stopping"
    journal.close()
    journal.close()
    assert running_stacks() == ()
    (line,) = Path(record.events).read_text().splitlines()
    assert json.loads(line)["type"] == "server.ready"


def test_what_never_began_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    StackJournal(resolved(tmp_path), StackOwner()).close()
    assert list(state_home("stacks").iterdir()) == []


def test_a_state_folder_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", "/proc/nonexistent")
    journal = StackJournal(resolved(tmp_path), StackOwner())
    journal.begin("http://127.0.0.1:3", (A, B))
    journal.note(ServerReady("b", 1.5))
    journal.close()
    assert journal.folder is None


def test_a_state_folder_that_goes_away_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "home"))
    journal = StackJournal(resolved(tmp_path), StackOwner())
    state_home("stacks").joinpath(journal.id, "events.ndjson").unlink()
    monkeypatch.setenv("GYM_TUI_HOME", "/proc/nonexistent")
    journal.begin("http://127.0.0.1:3", (A, B))
    journal.note(ServerReady("b", 1.5))
    assert running_stacks() == ()
    journal.close()
