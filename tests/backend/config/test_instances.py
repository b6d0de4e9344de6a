"""Almost-servers and references, through validation: what is said about each field."""

from __future__ import annotations

import pytest

from backend.config.dataset_entries import dataset_problems, repeats_of
from backend.config.validation import validate_config

EXAMPLE = {"name": "n", "type": "example", "jsonl_fpath": "x.jsonl"}


def lines(report) -> list[str]:
    return [line for finding in report.findings if finding.severity == "error" for line in finding.message.splitlines()]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ("domain: nope", "rs -> resources_servers -> quiz -> domain: Must be one of: 'math', 'coding',"),
        ("x: 1", "rs -> resources_servers -> quiz -> domain: is missing"),
        ("domain: math, port: abc", "quiz -> port: must be a whole number"),
        ("domain: math, port: 70000", "quiz -> port: must be between 0 and 65535"),
        ("domain: math, num_workers: 0", "quiz -> num_workers: must be a whole number of at least 1"),
        ("domain: math, host: 3", "quiz -> host: must be a text"),
        ("domain: math, datasets: {a: 1}", "quiz -> datasets: must be a list"),
        (
            "domain: math, datasets: [{name: a, type: train, jsonl_fpath: x}]",
            "datasets -> 0 -> license: is missing for type 'train'",
        ),
        ("domain: math, datasets: [{name: a, type: tran, jsonl_fpath: x}]", "datasets -> 0 -> type: Must be one of: 'train'"),
    ],
)
def test_one_line_per_field_with_its_place(write, request_for, fields: str, line: str) -> None:
    write({"x.yaml": "rs:\n  resources_servers:\n    quiz: {entrypoint: app.py, " + fields + "}\n"})
    report = validate_config(request_for("x.yaml"), strict=False)
    assert not report.valid
    (finding,) = report.findings
    assert finding.place.line == 3
    found = lines(report)
    assert found == [finding.message]
    assert finding.message.startswith("'rs' looks like a server but is not valid, it will not be started: rs -> ")
    assert line in finding.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rs: {resources_servers: {a: {entrypoint: app.py}, b: {}}}", "must hold exactly one implementation, found a, b"),
        ("rs: {resources_servers: {a: {entrypoint: /abs/app.py, domain: math}}}", "not an absolute path"),
        ("ag: {responses_api_agents: {a: {entrypoint: app.py, domain: nope}}}", "Must be one of"),
    ],
)
def test_other_almost_servers(write, request_for, text: str, line: str) -> None:
    write({"x.yaml": text})
    assert any(line in found for found in lines(validate_config(request_for("x.yaml"), strict=True)))


@pytest.mark.parametrize("name", ["a\\x00", "a\\x1b[2J", "a\\r\\nx: y", "\\x9b", "a\\x7f"])
def test_a_name_with_control_characters_is_no_servers(write, request_for, name: str) -> None:
    for text in (f'"{name}": {{resources_servers: {{quiz: ', f'rs: {{resources_servers: {{"{name}": '):
        write({"x.yaml": text + "{entrypoint: app.py, domain: math}}}\n"})
        (finding,) = validate_config(request_for("x.yaml"), strict=False).findings
        assert finding.severity == "error"
        assert finding.message.endswith(": must not have control characters in its names")


def test_almost_servers_can_be_tolerated(write, request_for) -> None:
    write({"x.yaml": "rs: {resources_servers: {a: {entrypoint: app.py}}}"})
    report = validate_config(request_for("x.yaml", overrides=("+error_on_almost_servers=false",)), strict=True)
    assert report.valid
    assert report.resolved.servers == ()
    assert "looks like a server" in report.findings[0].message


def test_a_block_without_entrypoint_is_no_server(write, request_for) -> None:
    write({"x.yaml": "rs: {resources_servers: {a: {domain: math}}}"})
    report = validate_config(request_for("x.yaml"), strict=False)
    assert report.valid
    assert "no entrypoint" in report.findings[0].message


AGENT = "ag: {responses_api_agents: {s: {entrypoint: app.py, FIELDS}}}\nweather: {resources_servers: {w: {entrypoint: app.py, domain: agent}}}\n"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ("resources_server: {type: resources_servers, name: wether}", "Did you mean: 'weather'?"),
        ("resources_server: {type: resources_servers, name: zzz}", "Available resources_servers: 'weather'"),
        (
            "model_server: {type: responses_api_models, name: weather}",
            "Available responses_api_models: (none). Add a configuration that defines it, for instance with --config",
        ),
    ],
)
def test_references_to_nothing(write, request_for, fields: str, hint: str) -> None:
    write({"x.yaml": AGENT.replace("FIELDS", fields)})
    report = validate_config(request_for("x.yaml"), strict=False)
    (finding,) = report.findings
    assert not report.valid
    assert "In server instance 'ag', field" in finding.message
    assert finding.hint == hint
    assert finding.place.line == 1


def test_all_broken_references_are_reported(write, request_for) -> None:
    fields = "a: {type: resources_servers, name: x1}, b: {type: resources_servers, name: x2, more: 1}"
    write({"x.yaml": AGENT.replace("FIELDS", fields)})
    assert len(validate_config(request_for("x.yaml"), strict=True).findings) == 2


@pytest.mark.parametrize(
    "fields",
    [
        "j: {type: resource_servers, name: weather}",
        "l: [{type: resources_servers, name: none}]",
        "m: {n: {type: resources_servers, name: none}}",
    ],
)
def test_what_the_run_time_overlooks_is_an_error_only_when_strict(write, request_for, fields: str) -> None:
    write({"x.yaml": AGENT.replace("FIELDS", fields)})
    request = request_for("x.yaml")
    lenient, strict = validate_config(request, strict=False), validate_config(request, strict=True)
    assert (lenient.valid, strict.valid) == (True, False)
    assert lenient.findings[0].message == strict.findings[0].message


def test_mappings_that_only_resemble_references(write, request_for) -> None:
    write({"x.yaml": AGENT.replace("FIELDS", "tool: {type: function, name: search}")})
    assert validate_config(request_for("x.yaml"), strict=True).findings == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"num_repeats": None}, []),
        ({"num_repeats": "???"}, []),
        ({"num_repeats": 0}, [("num_repeats",)]),
        ({"num_repeats": "x"}, [("num_repeats",)]),
        ({"jsonl_fpath": None}, [("jsonl_fpath",)]),
        ({"license": "WTFPL"}, [("license",)]),
        ({"license": "MIT"}, []),
        ({"type": "train"}, [("license",)]),
        ({"type": "validation", "license": "TBD"}, []),
        ({"type": "benchmark"}, [("prepare_script",)]),
        ({"type": "benchmark", "prepare_script": "p.py", "license": "any", "num_repeats": 4}, []),
        ({"type": "benchmark", "prepare_script": "p.py", "agent": 3}, [("agent",)]),
        ({"source": {"type": "huggingface", "repo_id": "a/b"}}, []),
        ({"source": {"type": "gitlab", "dataset_name": "d", "version": "1"}}, [("source", "artifact_fpath")]),
        ({"source": {"type": "ftp"}}, [("source", "type")]),
        ({"source": {"type": "huggingface", "repo_id": "a"}, "huggingface_identifier": {"repo_id": "a"}}, [("source",)]),
        ({"huggingface_identifier": {"repo_id": "a"}, "gitlab_identifier": {"dataset_name": "d", "version": "1", "artifact_fpath": "f"}}, []),
        ({"huggingface_identifier": {}}, [("huggingface_identifier", "repo_id")]),
    ],
)  # fmt: skip
def test_dataset_entries(changes: dict, expected: list) -> None:
    assert [path for path, _ in dataset_problems({**EXAMPLE, **changes})] == expected


def test_null_repeats_mean_once() -> None:
    assert (repeats_of({}), repeats_of({"num_repeats": None}), repeats_of({"num_repeats": 4})) == (1, 1, 4)


@pytest.mark.parametrize(
    ("text", "name", "read_as", "place"),
    [
        ("5: {resources_servers: {mcqa: {entrypoint: app.py, domain: math}}}", "5", "as a number", (1, 1, "5")),
        ("a: 1\nno: {resources_servers: {mcqa: {entrypoint: app.py, domain: math}}}", "no", "as false", (2, 1, "no")),
        ("010: {responses_api_agents: {s: {entrypoint: app.py}}}", "010", "as a number", (1, 1, "010")),
        (
            "rs: {resources_servers: {7: {entrypoint: app.py, domain: math}}}",
            "7",
            "as a number",
            (1, 26, "rs.resources_servers.7"),
        ),
    ],
)
def test_a_name_that_is_no_text(write, request_for, text: str, name: str, read_as: str, place: tuple) -> None:
    write({"x.yaml": text, "y.yaml": AGENT.replace("FIELDS", "x: 1")})
    report = validate_config(request_for("x.yaml", "y.yaml"), strict=True)
    finding = next(finding for finding in report.findings if finding.severity == "error")
    assert sum(each.severity == "error" for each in report.findings) == 1
    assert finding.message.endswith(f"a name must be a text, and YAML reads `{name}` {read_as}; quote it")
    assert (finding.place.line, finding.place.column, finding.place.key) == place
    assert finding.fix == f"'{name}':"
    write({"x.yaml": text.replace(f"{name}:", finding.fix)})
    assert validate_config(request_for("x.yaml", "y.yaml"), strict=False).valid


def test_an_agent_without_a_text_for_a_name_does_not_stop_composition(write, request_for) -> None:
    unbound = "h: {responses_api_agents: {h: {entrypoint: app.py, resources_server: {type: resources_servers, name: '???'}}}}"
    bound = "responses_api_agents: {8: {entrypoint: app.py, resources_server: {type: resources_servers, name: w}}}"
    write(
        {
            "x.yaml": f"5: {{{bound}}}\n{unbound}\nag: {{{bound.replace('8', 's')}}}\nw: {{resources_servers: {{w: {{entrypoint: app.py, domain: math}}}}}}"
        }
    )
    report = validate_config(request_for("x.yaml"), strict=True)
    assert {finding.fix for finding in report.findings if finding.severity == "error"} == {"'5':", "'8':"}
