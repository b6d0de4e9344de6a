from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.catalog.composed import Composed, compose
from backend.catalog.scan import Scan
from backend.config.findings import Findings
from backend.config.request import ConfigRequest
from backend.config.resolution import resolve_collecting


def composed(root: Path, relative: str) -> Composed:
    with Scan([root], cache=False) as scan:
        return compose(scan, str(root / relative))


@pytest.mark.parametrize(
    ("text", "domain", "description"),
    [
        ("r: {resources_servers: {r: {domain: math, description: One}}}", "math", "One"),
        ("r: {resources_servers: {r: {domain: math}}}", "math", "Questions with one answer"),
        ("a: {responses_api_agents: {a: {description: First}}}\nr: {resources_servers: {r: {description: Second}}}", "knowledge", "First"),
        ("r: {resources_servers: {r: {description: '???', domain: ''}}}", "knowledge", "Questions with one answer"),
        ("r: {resources_servers: {r: {description: 3}}}", "knowledge", "3"),
        ("config_paths_too: [x]", "knowledge", "Questions with one answer"),
    ],
)  # fmt: skip
def test_texts_are_its_own_else_those_of_the_whole(root: Path, write, text: str, domain: str, description: str) -> None:
    write("root", {"x.yaml": f"config_paths: [resources_servers/quiz/configs/quiz.yaml]\n{text}\n"})
    found = composed(root, "x.yaml")
    assert (found.domain, found.description, found.value) == (domain, description, None)


def test_unset_keys(root: Path, write) -> None:
    write(
        "root",
        {
            "x.yaml": "a: {b: '???', c: ['???'], d: '${e.f}', g: '${known}', h: '${oc.env:X}', i: '${.b}'}\nknown: 1\nj: '???'\n",
            "y.yaml": "config_paths: [x.yaml]\na: {b: 1}\nj: '???'\n",
        },
    )
    assert composed(root, "x.yaml").unset == ("a.b", "e", "j")
    assert composed(root, "y.yaml").unset == ("e", "j")


def test_a_file_in_two_branches_merges_where_it_is_found_first(root: Path, write) -> None:
    write(
        "root",
        {
            "top.yaml": "config_paths: [left.yaml, right.yaml]\n",
            "left.yaml": "config_paths: [shared.yaml]\n",
            "right.yaml": "config_paths: [deep.yaml, shared.yaml]\n",
            "deep.yaml": "",
            "shared.yaml": "",
        },
    )
    names = [path.name for path in composed(root, "top.yaml").files]
    assert names == ["shared.yaml", "left.yaml", "deep.yaml", "right.yaml", "top.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("config_paths: [nowhere.yaml]", "nowhere.yaml' was not found"),
        ("config_paths: [resources_servers]", "this is no file"),
        ("a: {_copy: b.c}", "b.c"),
        ("a: {_copy: b}\nb: {_copy: a}", "circle"),
        ("config_paths: [resources_servers/quiz/configs/quiz.yaml]\nquiz_rs: [1]", "is a list here"),
        ("a: [", "malformed YAML"),
    ],
)
def test_what_is_wrong(root: Path, write, text: str, message: str) -> None:
    write("root", {"x.yaml": text})
    broken = composed(root, "x.yaml").broken
    assert broken is not None and message in broken.message
    assert broken.file in (str(root / "x.yaml"), str(root / "resources_servers"))


def test_interpolated_includes_are_left_to_runs(root: Path, write) -> None:
    write("root", {"x.yaml": "config_paths: ['${oc.env:MORE}']\na: 1\n"})
    assert composed(root, "x.yaml").broken is None


KINDS = ("resources_servers", "responses_api_agents", "responses_api_models")
NAMES = st.sampled_from(["one", "two", "three"])
BLOCK = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["a", "b", 3]),
        "domain": st.sampled_from(["math", "coding"]),
        "resources_server": st.fixed_dictionaries({"type": st.just("resources_servers"), "name": NAMES}),
        "limit": st.sampled_from([1, None, "???"]),
    },
)
INSTANCE = st.one_of(
    st.builds(lambda kind, name, block: {kind: {name: {"entrypoint": "app.py", **block}}}, st.sampled_from(KINDS), NAMES, BLOCK),
    st.builds(lambda word, source: {word: source}, st.sampled_from(["_inherit_from", "_copy"]), NAMES),
    st.none(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layers=st.lists(st.dictionaries(NAMES, INSTANCE, min_size=1), min_size=1, max_size=3))
def test_servers_are_those_that_a_run_would_have(tmp_path: Path, layers: list[dict]) -> None:
    import yaml

    for number, layer in enumerate(layers):
        includes = [f"{number - 1}.yaml"] if number else []
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump({"config_paths": includes, **layer}))
    top = f"{len(layers) - 1}.yaml"
    findings = Findings()
    request = ConfigRequest((top,), search_dirs=(str(tmp_path),), cwd=tmp_path, stand_in_model=True, check_components=False)
    resolved = resolve_collecting(request, findings)
    found = composed(tmp_path, top)
    if resolved is None or findings.errors:
        return
    real = [(server.name, server.kind, server.implementation) for server in resolved.servers if server.name != "policy_model"]
    ours = [(server.instance, server.type, server.implementation) for server in found.servers]
    assert [server for server in ours if server in real] == real
    assert found.broken is None
