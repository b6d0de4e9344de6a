from __future__ import annotations

import pytest

from backend.config.errors import ConfigError
from backend.config.resolution import resolve_config
from backend.config.validation import agent_routes, agents_by_resources_server, validate_config

ENVIRONMENT = """\
rs: {resources_servers: {quiz: {entrypoint: app.py, domain: games}}}
ag:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: rs}
      model_server: {type: responses_api_models, name: policy_model}
"""


def test_nothing_is_valid(request_for) -> None:
    report = validate_config(request_for(), strict=True)
    assert (report.valid, report.findings) == (True, ())
    assert report.resolved.servers == ()


def test_a_missing_model_is_a_warning_unless_strict(write, request_for) -> None:
    write({"x.yaml": ENVIRONMENT})
    report = validate_config(request_for("x.yaml"), strict=False)
    assert report.valid
    assert [finding.severity for finding in report.findings] == ["warning"]
    assert "stand-in" in report.findings[0].message
    assert "responses_api_models/'policy_model'" in report.findings[0].message
    assert report.resolved.server("policy_model") is not None
    strict = validate_config(request_for("x.yaml"), strict=True)
    assert not strict.valid
    assert strict.resolved is None


def test_other_problems_stay_errors_beside_a_missing_model(write, request_for) -> None:
    write({"x.yaml": ENVIRONMENT + "cvdp: ${cvdp_sim_image}\n"})
    report = validate_config(request_for("x.yaml"), strict=False)
    assert not report.valid
    assert [finding.message for finding in report.findings if finding.severity == "error"] == [
        "config value 'cvdp' references 'cvdp_sim_image', which is not set after merging"
    ]


def test_all_findings_come_at_once(write, request_for) -> None:
    write(
        {
            "x.yaml": "a: ???\nb: ${ghost}\nrs: {resources_servers: {q: {entrypoint: app.py, domain: nope}}}\n"
            "ag: {responses_api_agents: {s: {entrypoint: app.py, r: {type: resources_servers, name: none}}}}\n"
            "port_range_low: 2\nport_range_high: 1\nresults_dir: 3\n"
        }
    )
    report = validate_config(request_for("x.yaml"), strict=True)
    assert [finding.place.line for finding in report.findings if finding.severity == "error"] == [1, 2, 3, 4, 7, 5]


def test_broken_files_are_all_named(write, request_for) -> None:
    write({"x.yaml": "a: [\n", "y.yaml": "- 1\n"})
    report = validate_config(request_for("x.yaml", "y.yaml", "z.yaml"), strict=False)
    assert [finding.message.split(":")[0].split("'")[0].strip() for finding in report.findings] == [
        "malformed YAML",
        "the top level of a configuration file must be a mapping, this is a list",
        "config_paths entry",
    ]


@pytest.mark.parametrize(
    ("text", "overrides", "lenient", "strict"),
    [
        ("num_repeat: 3", (), ["num_repeat"], ["num_repeat"]),
        ("", ("++lmit=3",), ["lmit"], ["lmit"]),
        ("my_paths: 1", (), [], ["my_paths"]),
        ("my_root: /x\nlimit: '${my_root}'", (), [], []),
        ("policy_model_name: x\nlimit: 3\nsplit: train", (), [], []),
    ],
)
def test_keys_that_nothing_reads(write, request_for, text: str, overrides: tuple, lenient: list, strict: list) -> None:
    write({"x.yaml": text})
    request = request_for("x.yaml", overrides=overrides)
    for is_strict, names in ((False, lenient), (True, strict)):
        report = validate_config(request, strict=is_strict)
        assert report.valid
        assert [finding.message for finding in report.findings] == [f"nothing reads the global key '{name}'" for name in names]


def test_an_override_on_a_server_that_is_not_there(write, request_for) -> None:
    write({"x.yaml": ENVIRONMENT})
    request = request_for("x.yaml", overrides=("++agg.responses_api_agents.simple_agent.steps=1",), stand_in_model=True)
    lenient, strict = validate_config(request, strict=False), validate_config(request, strict=True)
    assert (lenient.valid, strict.valid) == (True, False)
    assert lenient.findings[0].message == "the override names the server 'agg', which no configuration defines"


def test_strict_looks_for_dataset_files(write, request_for) -> None:
    datasets = "datasets: [{name: d, type: benchmark, jsonl_fpath: here.jsonl, prepare_script: p.py, prompt_config: gnoe.yaml}]"
    write(
        {
            "x.yaml": f"rs: {{resources_servers: {{q: {{entrypoint: app.py, domain: math, {datasets}}}}}}}",
            "here.jsonl": "",
            "gone.yaml": "",
        }
    )
    report = validate_config(request_for("x.yaml"), strict=True)
    assert report.valid
    assert [(finding.message, finding.nearest, finding.fix) for finding in report.findings] == [
        ("the file p.py of dataset 'd' does not exist", None, None),
        ("the file gnoe.yaml of dataset 'd' does not exist", "gone.yaml", "prompt_config: gone.yaml"),
    ]


def test_a_search_folder_that_does_not_exist(request_for) -> None:
    report = validate_config(request_for(search_dirs=("nowhere",)), strict=False)
    assert report.findings[0].message == "search folder 'nowhere' does not exist"


ROUTED = """\
rs: {resources_servers: {quiz: {entrypoint: app.py, domain: games, datasets: [{name: d, type: example, jsonl_fpath: x}]}}}
one: {responses_api_agents: {s: {entrypoint: app.py, resources_server: {type: resources_servers, name: rs}}}}
"""
SECOND = "two: {responses_api_agents: {s: {entrypoint: app.py, resources_server: {type: resources_servers, name: rs}, datasets: [{name: e, type: example, jsonl_fpath: y}]}}}\n"


def routes(write, request_for, text: str, *overrides: str) -> list[tuple[str, str, str]]:
    write({"x.yaml": text})
    resolved = resolve_config(request_for("x.yaml", overrides=overrides))
    return [(route.declared_by, route.agent, route.dataset["name"]) for route in agent_routes(resolved)]


def test_routes(write, request_for) -> None:
    assert routes(write, request_for, ROUTED) == [("rs", "one", "d")]
    pinned = ROUTED.replace("name: d,", "name: d, agent: two,") + SECOND
    assert routes(write, request_for, pinned) == [("rs", "two", "d"), ("two", "two", "e")]
    assert routes(write, request_for, ROUTED + SECOND, "+agent_map={rs: one}")[0] == ("rs", "one", "d")
    write({"x.yaml": ROUTED + SECOND})
    assert agents_by_resources_server(resolve_config(request_for("x.yaml"))) == {"rs": ("one", "two")}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (ROUTED + SECOND, "several agents use the resources_servers 'rs' that declares dataset 'd': one, two"),
        (ROUTED.splitlines()[0], "no agent uses the resources_servers 'rs'"),
        (ROUTED.replace("name: d,", "name: d, agent: ony,"), "is pinned to agent 'ony', which does not use"),
        (ROUTED + SECOND.replace("name: e,", "name: e, agent: one,"), "several agents"),
        (SECOND.replace("name: e,", "name: e, agent: one,") + ROUTED.splitlines()[0], "pinned to another agent, 'one'"),
        (
            "m: {responses_api_models: {o: {entrypoint: a.py, datasets: [{name: d, type: example, jsonl_fpath: x}]}}}",
            "on the model server 'm'",
        ),
    ],
)
def test_routing_errors(write, request_for, text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routes(write, request_for, text)
    assert part in caught.value.message
    assert caught.value.place is not None


DEEP = "rs: {resources_servers: {mcqa: {entrypoint: app.py, domain: math, FIELD}}}"


@pytest.mark.parametrize("field", ["x: {y: '${nowhere}'}", "x: [{y: '${nowhere}'}]", "x: {y: '${oc.env:NO_SUCH_VARIABLE}'}"])
def test_interpolations_below_a_servers_fields_are_not_needed_to_validate(write, request_for, field: str) -> None:
    write({"x.yaml": DEEP.replace("FIELD", field)})
    for strict in (False, True):
        report = validate_config(request_for("x.yaml"), strict=strict)
        assert report.valid
        (finding,) = report.findings
        assert (finding.severity, finding.place.line) == ("warning", 1)
        assert finding.place.key.startswith("rs.resources_servers.mcqa.x")
        assert finding.fix is not None
    with pytest.raises(ConfigError, match=r"rs\.resources_servers\.mcqa\.x"):
        resolve_config(request_for("x.yaml"))


@pytest.mark.parametrize(
    "field",
    ["x: '${nowhere}'", "x: ['${nowhere}']", "x: {type: resources_servers, name: '${nowhere}'}", "x: {y: '${nowhere'}"],
)
def test_fields_references_and_grammar_are_needed_to_validate(write, request_for, field: str) -> None:
    write({"x.yaml": DEEP.replace("FIELD", field)})
    assert not validate_config(request_for("x.yaml"), strict=False).valid


def test_what_directives_take_from_is_read(write, request_for) -> None:
    write(
        {
            "x.yaml": "base: {opts: {x: 1}}\none: {_copy: base.opts, x: 3}\ntwo: 5\n"
            "rs: {resources_servers: {mcqa: {entrypoint: app.py, domain: math, a: {_copy: one}, b: '${copy:two}'}}}"
        }
    )
    for strict in (False, True):
        report = validate_config(request_for("x.yaml", overrides=("++base.opts.y=5",)), strict=strict)
        assert (report.valid, report.findings) == (True, ())


def test_thousands_of_unknown_keys_are_all_told(write, request_for) -> None:
    write({"x.yaml": "num_repeat: 1\n" + "".join(f"my_setting_{number}: 1\n" for number in range(2000)) + "num_shard: 1\n"})
    findings = validate_config(request_for("x.yaml"), strict=True).findings
    assert len(findings) == 2002
    assert (findings[0].nearest, findings[-1].nearest) == ("num_repeats", "num_shards")
