"""The view of a resolution: layers, stages, and the chain of each key. Expected chains are read off the worked example's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.config.request import FlagValue
from backend.config.resolve_view import ResolvedView, resolve_view
from tests.backend.config.riddle import OVERRIDES, RIDDLE

GRADING = "hard_rs.resources_servers.riddle.grading"
MODEL = "policy_model.responses_api_models.openai_model"


@pytest.fixture
def view(write, request_for) -> ResolvedView:
    write(RIDDLE)
    return resolve_view(request_for("hard.yaml", "endpoint.yaml", overrides=OVERRIDES))


def chain(view: ResolvedView, key: str) -> list[tuple]:
    entry = view.entry(key)
    assert entry is not None
    return [
        (step.origin.kind, Path(step.origin.file or "").name, step.origin.line, step.layer, step.value) for step in entry.chain
    ]


def test_layers_in_the_order_of_precedence(view: ResolvedView, tmp_path: Path) -> None:
    assert [(layer.number, layer.kind, layer.title, layer.included_by) for layer in view.layers] == [
        (1, "default", "defaults", None),
        (2, "file", "riddle.yaml", 3),
        (3, "file", "hard.yaml", None),
        (4, "file", "endpoint.yaml", None),
        (5, "env_file", str(tmp_path / "env.yaml"), None),
        (6, "override", OVERRIDES[0], None),
        (7, "override", OVERRIDES[1], None),
        (8, "override", OVERRIDES[2], None),
    ]
    assert view.layers[4].tree == {
        "policy_base_url": "http://localhost:9/v1",
        "policy_api_key": "****",
        "policy_model_name": "tiny",
        "limit": 4,
    }
    assert view.layers[6].tree == {"riddle_agent": {"responses_api_agents": {"simple_agent": {"max_steps": 9}}}}


def test_a_chain_names_every_layer_that_set_the_key(view: ResolvedView) -> None:
    assert chain(view, "limit") == [
        ("file", "riddle.yaml", 10, 2, 1),
        ("file", "hard.yaml", 9, 3, 2),
        ("file", "endpoint.yaml", 5, 4, 3),
        ("env_file", "env.yaml", 4, 5, 4),
    ]
    assert chain(view, GRADING) == [
        ("file", "riddle.yaml", 1, 2, "strict"),
        ("directive", "hard.yaml", 2, None, "strict"),
        ("file", "hard.yaml", 2, 3, "hard"),
        ("override", "", None, 6, "cli"),
    ]
    entry = view.entry("limit")
    assert (entry.origin.line, [step.value for step in entry.beaten]) == (4, [3, 2, 1])


def test_an_override_on_the_source_reaches_the_heir(view: ResolvedView) -> None:
    entry = view.entry("hard_agent.responses_api_agents.simple_agent.max_steps")
    assert (entry.value, entry.origin.text) == (9, OVERRIDES[1])
    assert entry.chain[-1].origin.text == "_inherit_from: riddle_agent"
    assert [(change.stage, change.kind) for change in entry.changes] == [("inherited", "added")]


def test_interpolations_tell_where_the_value_comes_from(view: ResolvedView) -> None:
    entry = view.entry(f"{MODEL}.openai_base_url")
    assert (entry.origin.kind, entry.origin.line) == ("file", 3)
    assert (entry.chain[-1].origin.kind, entry.chain[-1].origin.text) == ("interpolation", "${policy_base_url}")
    assert Path(entry.chain[-1].origin.file).name == "env.yaml"
    named = view.entry(f"{MODEL}.openai_model").chain[-1].origin
    assert (named.text, named.file) == ("${policy_model_name}, set by ++policy_model_name=big", None)
    assert [(change.stage, change.before, change.after) for change in entry.changes] == [
        ("interpolated", "${policy_base_url}", "http://localhost:9/v1")
    ]


def test_replaced_lists_and_cleared_mappings_are_named(write, request_for) -> None:
    write({"a.yaml": "server: {args: [1, 2, 3], env: {X: 1}}", "b.yaml": "server: {args: [9], env: null}"})
    view = resolve_view(request_for("a.yaml", "b.yaml"))
    assert view.tree["server"] == {"args": [9], "env": None}
    effects = {key: view.entry(key).winner.effect for key in ("server.args", "server.env", "server")}
    assert effects == {"server.args": "replaces a list (3 -> 1)", "server.env": "clears a mapping", "server": ""}


def test_stages(view: ResolvedView) -> None:
    names = {stage.name: {entry.key for entry in stage.entries} for stage in view.stages}
    assert list(names) == ["read", "merged", "inherited", "interpolated", "validated"]
    assert "L2 riddle.yaml.limit" in names["read"]
    assert "riddle_rs.resources_servers.riddle.grading" in names["merged"]
    assert "riddle_rs.resources_servers.riddle.grading" not in names["inherited"]
    removed = {entry.key for entry in view.stages[2].removed}
    assert {"riddle_rs", "hard_rs._inherit_from", "judge_model._copy"} <= removed
    assert view.entries == view.stages[-1].entries
    assert f"{MODEL}.host" in names["validated"] - names["interpolated"]
    assert view.entry(f"{MODEL}.host").changes[-1].stage == "validated"


def test_flags_and_defaults_and_includes_are_origins(write, request_for) -> None:
    write({"x.yaml": "config_paths: [y.yaml]\nlimit: 1", "y.yaml": ""})
    view = resolve_view(request_for("x.yaml", flag_values=(FlagValue("limit", 2, "--limit"),)))
    limit, ports = view.entry("limit"), view.entry("port_range_low")
    assert (limit.origin.kind, limit.origin.text, limit.winner.layer) == ("flag", "--limit", 3 + 1)
    assert (ports.origin.kind, ports.winner.layer) == ("default", 1)
    assert view.entry("config_paths[0]").origin.kind == "flag"
    assert view.entry("config_paths[1]").origin.line == 1


def test_environment_variables_are_origins_and_their_secrets_are_masked(write, request_for, monkeypatch) -> None:
    monkeypatch.setenv("SOME_FOLDER", "/data")
    monkeypatch.setenv("SOME_API_KEY", "abc")
    write({"x.yaml": "where: ${oc.env:SOME_FOLDER}\nother: ${oc.env:UNSET_ONE,fallback}\nheader: ${oc.env:SOME_API_KEY}\n"})
    view = resolve_view(request_for("x.yaml"))
    origin = view.entry("where").chain[-1].origin
    assert (origin.kind, origin.text) == ("variable", "SOME_FOLDER")
    assert view.entry("other").chain[-1].origin.kind == "interpolation"
    assert view.tree["other"] == "fallback"
    assert (view.entry("header").value, view.entry("header").secret) == ("****", True)


def test_no_secret_is_anywhere_in_a_view(write, request_for) -> None:
    secrets = ("sk-in-a-file-1", "sk-in-env-yaml-2", "sk-in-override-3", "hunter2hunter2")
    write(
        {
            "x.yaml": f"policy_api_key: {secrets[0]}\nurl: http://u:{secrets[3]}@h/x\nnote: see {secrets[1]}\nshort: ${{pw.password}}\npw: {{password: abc}}\n",
            "env.yaml": f"policy_api_key: {secrets[1]}\n",
        }
    )
    view = resolve_view(request_for("x.yaml", overrides=(f"++policy_api_key={secrets[2]}", "++limit=[1", "+bad.token=x,y")))
    text = repr((view.layers, view.stages, view.tree, view.findings, str(view.error)))
    assert [secret for secret in secrets if secret in text] == []
    assert view.tree["short"] == "****"
    assert view.entry("short").secret
    assert view.tree["note"] == "see ****"
    assert view.entry("policy_api_key").secret


def test_what_can_be_read_is_shown_when_something_cannot(write, request_for) -> None:
    write({"x.yaml": "limit: 3\nserver: {a: 1}", "bad.yaml": "a: [\n"})
    view = resolve_view(request_for("x.yaml", "bad.yaml", "gone.yaml", overrides=("+server=[1]", "++lmit=4")))
    assert [(layer.title, bool(layer.error)) for layer in view.layers[1:4]] == [
        ("x.yaml", False),
        ("bad.yaml", True),
        ("gone.yaml", True),
    ]
    assert (view.resolved, view.damaged) == (None, True)
    assert view.entry("limit").value == 3
    assert view.entry("lmit").value == 4
    assert view.tree["server"] == {"a": 1}
    assert [finding.severity for finding in view.findings].count("error") == 3
    assert str(view.error).count("also: ") == 2


def test_a_broken_env_yaml_leaves_the_files(write, request_for) -> None:
    write({"x.yaml": "limit: 3", "env.yaml": "a: ["})
    view = resolve_view(request_for("x.yaml"))
    assert view.entry("limit").value == 3
    assert view.error.place.file.endswith("env.yaml")


def test_long_chains_of_heirs_leave_out_steps_and_say_how_many(write, request_for) -> None:
    links = "".join(f"b{number + 1}: {{_copy: b{number}, y{number}: {number}}}\n" for number in range(40))
    write({"x.yaml": f"b0: {{x: 1}}\n{links}"})
    view = resolve_view(request_for("x.yaml"))
    entry = view.entry("b40.x")
    assert len(entry.chain) <= 13
    assert (entry.value, entry.origin.line) == (1, 1)
    (gap,) = [step.origin.text for step in entry.chain if "further" in step.origin.text]
    assert gap == f"{41 - (len(entry.chain) - 1)} further steps"
    assert [step.origin.text for step in entry.chain][-2:] == ["_copy: b38", "_copy: b39"]
    assert view.entry("b40.y39").value == 39
    assert len(view.tree["b40"]) == 41
