from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backend.catalog.entries import CatalogEntry
from backend.catalog.kinds import KINDS, WORKLOADS
from backend.catalog.listing import component_names, find_component, likely_names, list_components, whole_catalog
from backend.catalog.selectors import select
from tests.backend.catalog.samples import MANIFEST, benchmark

HEAVY = ("omegaconf", "hydra", "pydantic", "fastapi", "aiohttp", "rich")


def listed(kind: str, *roots: Path) -> dict[str, CatalogEntry]:
    return {entry.name: entry for entry in list_components([kind], roots).entries}


def test_benchmarks(root: Path) -> None:
    catalog = list_components(["benchmark"], [root])
    assert [(entry.name, entry.domain, entry.description) for entry in catalog.entries] == [
        ("lcb/v6/config", "coding", "About lcb"),
        ("tau2/configs/tau2", "agent", "About tau2"),
        ("tau2/configs/tau2_long", "agent", "About tau2_long"),
        ("trivia", "knowledge", "Questions with one answer"),
    ]
    assert catalog.warnings == ()


def test_what_an_entry_knows(root: Path) -> None:
    trivia = listed("benchmark", root)["trivia"]
    assert (trivia.kind, trivia.status, trivia.state, trivia.manifest) == ("benchmark", "no-manifest", "no data", None)
    assert (trivia.flag, trivia.selector) == ("--benchmark", "trivia")
    assert (trivia.path, trivia.folder, trivia.root) == (
        root / "benchmarks/trivia/config.yaml",
        root / "benchmarks/trivia",
        root,
    )
    assert trivia.configs == (root / "resources_servers/quiz/configs/quiz.yaml", trivia.path)
    assert [server.implementation for server in trivia.resources_servers] == ["quiz"]
    (agent,) = trivia.agents
    assert (agent.instance, agent.implementation, agent.resources_server) == ("trivia_agent", "simple_agent", "trivia_rs")
    (dataset,) = trivia.datasets
    assert (dataset.name, dataset.type, dataset.declared_by, dataset.path, dataset.file) == (
        "trivia",
        "benchmark",
        "trivia_agent",
        "t.jsonl",
        None,
    )
    assert (trivia.readme, trivia.shadowed, trivia.broken, trivia.value) == (None, (), None, None)


def test_data_and_readme_are_found(root: Path, write) -> None:
    write("root", {"t.jsonl": "{}\n", "benchmarks/trivia/README.md": "# Trivia\n"})
    trivia = listed("benchmark", root)["trivia"]
    assert trivia.state == "ready"
    assert trivia.datasets[0].file == root / "t.jsonl"
    assert trivia.readme == root / "benchmarks/trivia/README.md"


def test_environments_and_servers_that_are_workloads(root: Path) -> None:
    assert [(entry.name, entry.flag, entry.selector) for entry in list_components(["environment"], [root]).entries] == [
        ("hermes_reasoning_gym", "--environment", "hermes_reasoning_gym"),
        ("resources_servers/quiz", "--resources-server", "quiz"),
        ("resources_servers/quiz/hard", "--resources-server", "quiz/hard"),
        ("walk", "--environment", "walk"),
    ]
    assert "resources_servers/quiz" not in listed("benchmark", root)


def test_a_server_with_the_name_of_an_environment_is_its_twin(root: Path, write) -> None:
    write("root", {"environments/quiz/config.yaml": "", "environments/hard/config.yaml": ""})
    assert [name for name in listed("environment", root) if name.startswith("resources_servers/")] == []


def test_a_server_that_declares_a_benchmark_is_one(root: Path, write) -> None:
    text = (root / "resources_servers/quiz/configs/hard.yaml").read_text().replace("type: example", "type: benchmark")
    write("root", {"resources_servers/quiz/configs/hard.yaml": text})
    assert "resources_servers/quiz/hard" in listed("benchmark", root)
    assert "resources_servers/quiz/hard" not in listed("environment", root)


def test_an_environment_that_was_renamed_is_left_out(root: Path, write) -> None:
    write("root", {"environments/old/config.yaml": "", "environments/old/.nemo_gym_tombstone": "walk\n"})
    assert "old" not in listed("environment", root)
    assert find_component("environment", "old", [root]) is None


def test_resources_servers(root: Path) -> None:
    servers = listed("resources-server", root)
    assert [(name, server.domain) for name, server in servers.items()] == [("quiz/hard", "knowledge"), ("quiz", "knowledge")]
    assert servers["quiz"].value == "Know more"


def test_models_need_no_content(root: Path) -> None:
    models = listed("model", root)
    assert list(models) == ["openai_model"]
    assert models["openai_model"].unset == ("policy_base_url",)
    assert models["openai_model"].model_group == "openai_model"


AGENT_WITH = "a: {{responses_api_agents: {{x: {{entrypoint: app.py, {}}}}}}}\n"


@pytest.mark.parametrize(
    ("configs", "variants", "self_contained"),
    [
        ({"x": "resources_server: {name: ???}"}, ("x",), False),
        ({"x": "max_steps: 1"}, ("x",), True),
        ({"x": "resources_server: {name: y}", "y": "agent_framework: z"}, ("x", "y"), True),
        ({"x": "resources_server: {name: y}, anthropic_api_key: k"}, ("x",), True),
        ({"x": "a: 1", "y": "resources_server: {name: y}"}, ("x", "y"), False),
        ({}, (), False),
    ],
)
def test_composition_of_agents(tmp_path: Path, write, configs, variants, self_contained: bool) -> None:
    files = {
        f"responses_api_agents/x/configs/{stem}.yaml": AGENT_WITH.format(fields.replace("???", "'???'"))
        for stem, fields in configs.items()
    }
    write("own", {**files, "responses_api_agents/x/app.py": "", "responses_api_agents/deeper/y/configs/y.yaml": ""})
    agents = listed("agent", tmp_path / "own")
    assert list(agents) == ["x"]
    assert (agents["x"].variants, agents["x"].self_contained) == (variants, self_contained)
    assert agents["x"].path == tmp_path / "own/responses_api_agents/x"
    assert agents["x"].flag == ("--agent-type" if variants else None)


def test_everything_once(root: Path) -> None:
    catalog = whole_catalog([root])
    assert [(entry.kind, entry.name) for entry in catalog.entries] == [
        ("environment", "hermes_reasoning_gym"),
        ("benchmark", "lcb/v6/config"),
        ("benchmark", "tau2/configs/tau2"),
        ("benchmark", "tau2/configs/tau2_long"),
        ("benchmark", "trivia"),
        ("environment", "walk"),
        ("agent", "simple_agent"),
        ("model", "openai_model"),
        ("resources-server", "quiz/hard"),
        ("resources-server", "quiz"),
    ]


@pytest.mark.parametrize("kind", list(KINDS))
def test_each_listed_name_is_found_alone(root: Path, kind: str) -> None:
    for entry in list_components([kind], [root]).entries:
        assert find_component(kind, entry.name, [root]) == entry
        for other in KINDS:
            found = find_component(other, entry.name, [root])
            assert found is None or found.kind == other


@pytest.mark.parametrize(
    ("kind", "name", "listed_as"),
    [
        ("benchmark", "trivia/config", "trivia"),
        ("benchmark", "lcb/v6", "lcb/v6/config"),
        ("environment", "reasoning_gym_hermes", "hermes_reasoning_gym"),
        ("model", "local/Qwen/small", "local/Qwen/small"),
        ("benchmark", "suite", None),
        ("benchmark", "plain", None),
        ("benchmark", "resources_servers/quiz", None),
        ("environment", "resources_servers/nothing", None),
        ("agent", "simple_agent/simple_agent", None),
        ("agent", "", None),
        ("agent", ".", None),
        ("agent", "..", None),
        ("agent", "x\0", None),
        ("model", "openai_model/", None),
        ("benchmark", "/trivia", None),
        ("benchmark", "", None),
        ("benchmark", "../benchmarks/trivia", None),
        ("benchmark", "trivia\0", None),
    ],
)
def test_other_names(root: Path, kind: str, name: str, listed_as: str | None) -> None:
    found = find_component(kind, name, [root])
    assert (found.name if found else None) == listed_as


def test_a_broken_file_is_listed_with_its_reason(root: Path) -> None:
    (root / "benchmarks/plain/config.yaml").write_text("a: {datasets: [{type: benchmark}]\nb: 1\n")
    entries = listed("benchmark", root)
    assert len(entries) == 5
    broken = entries["plain"].broken
    assert (broken.file, broken.line) == (str(root / "benchmarks/plain/config.yaml"), 2)
    assert broken.message.startswith("malformed YAML")
    assert (entries["plain"].state, entries["plain"].domain) == ("broken", None)
    assert entries["trivia"].broken is None


@pytest.mark.parametrize(
    ("kind", "path", "content", "message"),
    [
        ("resources-server", "resources_servers/quiz/configs/quiz.yaml", b"a: [", "malformed YAML"),
        ("model", "responses_api_models/openai_model/configs/openai_model.yaml", b"- 1\n", "must be a mapping"),
        ("agent", "responses_api_agents/simple_agent/configs/simple_agent.yaml", b"a: 1\na: 2\n", "is there twice"),
        ("environment", "environments/walk/config.yaml", b"a: b\n\xff", "not UTF-8"),
        ("benchmark", "benchmarks/trivia/config.yaml", b"x: {datasets: [{type: benchmark}\n\xff", "not UTF-8"),
    ],
)
def test_broken_files_of_every_kind(root: Path, kind: str, path: str, content: bytes, message: str) -> None:
    before = len(list_components([kind], [root]).entries)
    (root / path).write_bytes(content)
    entries = list_components([kind], [root]).entries
    assert len(entries) == before or kind == "environment"
    (broken,) = [entry.broken for entry in entries if entry.broken]
    assert message in broken.message
    assert broken.file == str(root / path)


def test_a_missing_include_breaks_one_entry_only(root: Path) -> None:
    path = root / "benchmarks/trivia/config.yaml"
    path.write_text(path.read_text().replace("configs/quiz.yaml", "configs/quizz.yaml"))
    entries = listed("benchmark", root)
    assert [name for name, entry in entries.items() if entry.broken] == ["trivia"]
    assert "quizz.yaml' was not found" in entries["trivia"].broken.message
    assert entries["trivia"].broken.file == str(path)


def test_a_directive_that_leads_nowhere_breaks_one_entry_only(root: Path) -> None:
    path = root / "benchmarks/trivia/config.yaml"
    path.write_text(path.read_text().replace("_inherit_from: quiz_rs", "_inherit_from: quizz_rs"))
    broken = listed("benchmark", root)["trivia"].broken
    assert "quizz_rs" in broken.message


def test_a_circle_of_includes_ends(root: Path) -> None:
    path = root / "resources_servers/quiz/configs/quiz.yaml"
    path.write_text(
        "config_paths: [benchmarks/trivia/config.yaml, resources_servers/quiz/configs/quiz.yaml]\n" + path.read_text()
    )
    assert listed("benchmark", root)["trivia"].broken is None


def test_a_path_that_moved_is_followed(root: Path, write) -> None:
    write(
        "root",
        {
            "responses_api_agents/tau2/configs/tau2.yaml": "t: {responses_api_agents: {tau2: {entrypoint: app.py, description: Two}}}",
            "environments/walk/config.yaml": "config_paths: [responses_api_agents/tau2/configs/tau2_agent.yaml]\n",
        },
    )
    walk = listed("environment", root)["walk"]
    assert (walk.broken, walk.description) == (None, "Two")


def test_the_earlier_root_wins(root: Path, write) -> None:
    own = write(
        "own",
        {"benchmarks/lcb/v6/config.yaml": "x: {resources_servers: {x: {domain: safety, datasets: [{type: benchmark}]}}}"},
    )
    entry = listed("benchmark", own, root)["lcb/v6/config"]
    assert (entry.domain, entry.root, entry.shadowed) == ("safety", own, (root / "benchmarks/lcb/v6/config.yaml",))
    assert find_component("benchmark", "lcb/v6", [own, root]) == entry
    assert listed("benchmark", root, root)["lcb/v6/config"].shadowed == ()


def test_includes_are_found_in_every_root(root: Path, write) -> None:
    trivia = (root / "benchmarks/trivia/config.yaml").read_text()
    own = write("own", {"benchmarks/mine/config.yaml": trivia})
    mine = listed("benchmark", own, root)["mine"]
    assert (mine.domain, mine.configs[0]) == ("knowledge", root / "resources_servers/quiz/configs/quiz.yaml")
    assert "was not found" in listed("benchmark", own)["mine"].broken.message


def test_manifests(root: Path) -> None:
    path = root / "benchmarks/trivia/manifest.yaml"
    path.write_text(MANIFEST)
    entry = listed("benchmark", root)["trivia"]
    assert (entry.status, entry.domain, entry.description) == ("experimental", "games", "Trivia, curated")
    manifest = entry.manifest
    assert (manifest.path, manifest.version, manifest.integration_profile, manifest.modality) == (
        path,
        "0.1.0",
        "custom-gym-verifier",
        "text",
    )
    assert (manifest.licensing, manifest.lifecycle) == ("unknown", "active")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (MANIFEST.replace("name: trivia", "name: other", 1), "its name is 'other'"),
        (MANIFEST.replace("kind: benchmark", "kind: environment"), "its kind is 'environment'"),
        ("a: [", "malformed"),
        ("a: 1", "lacks name"),
    ],
)
def test_a_wrong_manifest_is_ignored_with_a_warning(root: Path, text: str, part: str) -> None:
    path = root / "benchmarks/trivia/manifest.yaml"
    path.write_text(text)
    catalog = list_components(["benchmark"], [root])
    (warning,) = catalog.warnings
    assert warning.startswith(f"{path}: ")
    assert part in warning
    assert next(entry for entry in catalog.entries if entry.name == "trivia").status == "no-manifest"


def test_a_manifest_names_a_deep_folder(root: Path) -> None:
    (root / "benchmarks/lcb/v6/manifest.yaml").write_text(MANIFEST.replace("name: trivia", "name: lcb/v6", 1))
    assert "lcb/v6" in listed("benchmark", root)
    assert "lcb/v6/config" not in listed("benchmark", root)
    assert find_component("benchmark", "lcb/v6", [root]).status == "experimental"


def test_names(root: Path) -> None:
    assert component_names(["benchmark"], [root]) == ["lcb/v6/config", "tau2/configs/tau2", "tau2/configs/tau2_long", "trivia"]
    assert component_names(WORKLOADS, [root])[-2:] == ["trivia", "walk"]


def test_likely_names_read_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"read {path}"))
    assert [(entry.kind, entry.name) for entry in likely_names(KINDS, [root])] == [
        ("benchmark", "plain"),
        ("benchmark", "suite"),
        ("benchmark", "trivia"),
        ("environment", "hermes_reasoning_gym"),
        ("environment", "walk"),
        ("agent", "simple_agent"),
        ("model", "openai_model"),
        ("resources-server", "only_flavors/one"),
        ("resources-server", "quiz"),
        ("resources-server", "quiz/hard"),
    ]


def test_no_root_at_all(tmp_path: Path) -> None:
    assert whole_catalog([tmp_path / "nowhere"]).entries == ()
    assert list_components(KINDS, []).entries == ()


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "benchmarks/trivia/loop").symlink_to(root / "benchmarks")
    assert "trivia" in listed("benchmark", root)


def test_names_that_are_hard_to_print(root: Path, write) -> None:
    names = ["[red]x", "wide-漢字", "two words", "esc\x1b[2J"]
    write("root", {f"benchmarks/{name}/config.yaml": benchmark("b") for name in names})
    for name in names:
        assert find_component("benchmark", name, [root]).name == name
        assert name in listed("benchmark", root)


def test_nothing_heavy_is_imported(root: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from backend.catalog.details import inspect_component;"
        "from backend.catalog.listing import whole_catalog;"
        f"roots = [Path({str(root)!r})]; whole_catalog(roots); inspect_component(['benchmark'], 'trivia', roots);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], 'yaml' in sys.modules)"
    )
    for yaml_is_needed in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
        )
        assert done.stdout.strip() == f"[] {yaml_is_needed}"


def test_a_benchmark_that_is_a_file_alone_is_found_by_its_name(root: Path, write) -> None:
    write("root", {"benchmarks/flat.yaml": benchmark("flat", "math")})
    found = find_component("benchmark", "flat", [root])
    assert found in list_components(["benchmark"], [root]).entries
    assert (found.name, found.selector) == ("flat", "flat")
    assert select("benchmark", "flat", [root]).path == root / "benchmarks/flat.yaml"
    write("root", {"benchmarks/flat/config.yaml": benchmark("flat", "math")})
    assert select("benchmark", "flat", [root]).path == root / "benchmarks/flat/config.yaml"


def test_a_config_that_cannot_be_read_is_a_broken_benchmark_whatever_it_says(root: Path, write) -> None:
    write("root", {"benchmarks/torn/config.yaml": "a: [1, 2\n", "benchmarks/torn/other.yaml": "a: [1, 2\n"})
    broken = [entry.name for entry in list_components(["benchmark"], [root]).entries if entry.broken]
    assert broken == ["torn"]
