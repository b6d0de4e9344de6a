from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backend.catalog import scan
from backend.catalog import scan as scan_module
from backend.catalog.benchmarks import benchmark_name, inspect_benchmark, list_benchmarks
from backend.errors import GymError

MANIFEST = """\
name: trivia
version: 0.1.0
kind: benchmark
integration_profile: custom-gym-verifier
domain: games
description: Trivia, curated
modality: text
datasets: [{name: trivia, type: benchmark}]
"""
HEAVY = ("omegaconf", "hydra", "pydantic", "fastapi", "aiohttp", "rich")


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose text was looked at since the test began."""
    seen: list[str] = []
    original = scan_module._read

    def counting(path: str, read):
        seen.append(path)
        return original(path, read)

    monkeypatch.setattr(scan_module, "_read", counting)
    return seen


@pytest.mark.parametrize(
    ("relative", "name"),
    [
        ("x/config.yaml", "x"),
        ("x/other.yaml", "x/other"),
        ("x/v6/config.yaml", "x/v6/config"),
        ("tau2/configs/tau2.yaml", "tau2/configs/tau2"),
        ("config.yaml", "config"),
    ],
)
def test_names(relative: str, name: str) -> None:
    assert benchmark_name(relative) == name


def test_listing(root: Path) -> None:
    catalog = list_benchmarks([root])
    assert [(entry.name, entry.domain, entry.description) for entry in catalog.entries] == [
        ("lcb/v6/config", "coding", "About lcb"),
        ("tau2/configs/tau2", "agent", "About tau2"),
        ("tau2/configs/tau2_long", "agent", "About tau2_long"),
        ("trivia", "knowledge", "Questions with one answer"),
    ]
    assert catalog.warnings == ()
    trivia = catalog.entries[-1]
    assert (trivia.kind, trivia.status, trivia.version, trivia.lifecycle) == ("benchmark", "no-manifest", None, None)
    assert (trivia.resources_servers, trivia.agent, trivia.datasets) == (("quiz",), "simple_agent", (("trivia", "benchmark"),))
    assert trivia.path == root / "benchmarks/trivia/config.yaml"


def test_a_broken_file_is_listed_with_its_reason(root: Path) -> None:
    (root / "benchmarks/plain/config.yaml").write_text("a: {datasets: [{type: benchmark}]\nb: 1\n")
    entry = next(entry for entry in list_benchmarks([root]).entries if entry.name == "plain")
    assert entry.broken.startswith("line 2: malformed YAML")
    assert entry.domain is None
    with pytest.raises(GymError, match="cannot be read: line 2"):
        inspect_benchmark("plain", [root])


def test_the_earlier_root_wins(root: Path, write) -> None:
    own = write(
        "own", {"benchmarks/lcb/v6/config.yaml": "x: {resources_servers: {x: {domain: safety, datasets: [{type: benchmark}]}}}"}
    )
    catalog = list_benchmarks([own, root])
    assert [entry.domain for entry in catalog.entries if entry.name == "lcb/v6/config"] == ["safety"]
    assert len(catalog.warnings) == 1
    assert "is hidden by" in catalog.warnings[0]


def test_manifests(root: Path) -> None:
    path = root / "benchmarks/trivia/manifest.yaml"
    path.write_text(MANIFEST)
    entry = next(entry for entry in list_benchmarks([root]).entries if entry.name == "trivia")
    assert (entry.status, entry.version, entry.domain, entry.description) == ("experimental", "0.1.0", "games", "Trivia, curated")
    assert (entry.integration_profile, entry.modality, entry.licensing, entry.lifecycle) == (
        "custom-gym-verifier",
        "text",
        "unknown",
        "active",
    )
    for text, part in (
        (MANIFEST.replace("name: trivia", "name: other", 1), "its name is 'other'"),
        ("a: [", "malformed"),
        ("a: 1", "lacks name"),
    ):
        path.write_text(text)
        catalog = list_benchmarks([root])
        assert part in catalog.warnings[0]
        assert next(entry for entry in catalog.entries if entry.name == "trivia").status == "no-manifest"


def test_a_manifest_names_a_deep_folder(root: Path) -> None:
    (root / "benchmarks/lcb/v6/manifest.yaml").write_text(MANIFEST.replace("name: trivia", "name: lcb/v6", 1))
    assert "lcb/v6" in [entry.name for entry in list_benchmarks([root]).entries]
    assert "lcb/v6/config" not in [entry.name for entry in list_benchmarks([root]).entries]
    assert inspect_benchmark("lcb/v6", [root])["details"]["status"] == "experimental"


def test_details(root: Path) -> None:
    assert inspect_benchmark("trivia", [root]) == {
        "name": "trivia",
        "type": "benchmark",
        "domain": "knowledge",
        "description": "Questions with one answer\nValue: Know more",
        "details": {
            "config": str(root / "benchmarks/trivia/config.yaml"),
            "status": "no-manifest",
            "resources servers": "quiz",
            "agent": "simple_agent",
            "datasets": "trivia",
        },
        "usage_example": "gym env start --benchmark trivia --model-type vllm_model",
    }
    assert inspect_benchmark("tau2/configs/tau2", [root])["name"] == "tau2/configs/tau2"


@pytest.mark.parametrize(
    ("name", "hint"), [("trivla", "Did you mean `trivia`?"), ("suite", "see `gym list benchmarks`"), ("plain", None)]
)
def test_unknown_benchmarks(root: Path, name: str, hint: str | None) -> None:
    with pytest.raises(GymError) as caught:
        inspect_benchmark(name, [root])
    assert caught.value.message == f"Unknown benchmark '{name}'."
    assert hint is None or caught.value.hint == hint


def test_the_cache_spares_reading_until_a_file_changes(root: Path, parsed: list[str], home: Path) -> None:
    first = list_benchmarks([root])
    assert len(parsed) > 5
    parsed.clear()
    assert list_benchmarks([root]) == first
    assert parsed == []
    quiz = root / "resources_servers/quiz/configs/quiz.yaml"
    quiz.write_text(quiz.read_text().replace("knowledge", "translation"))
    changed = list_benchmarks([root])
    assert parsed == [str(quiz)]
    assert changed.entries[-1].domain == "translation"
    (root / "benchmarks/trivia/config.yaml").unlink()
    assert "trivia" not in [entry.name for entry in list_benchmarks([root]).entries]
    (cache,) = (home / "cache/catalog").iterdir()
    assert str(root / "benchmarks/trivia/config.yaml") not in json.loads(cache.read_bytes())["files"]


def test_same_size_and_a_new_time_are_a_change(root: Path) -> None:
    path = root / "benchmarks/lcb/v6/config.yaml"
    list_benchmarks([root])
    path.write_text(path.read_text().replace("coding", "safety"))
    os.utime(path, ns=(1, 1))
    assert list_benchmarks([root]).entries[0].domain == "safety"


def test_a_single_look_up_keeps_the_cache_whole(root: Path, parsed: list[str]) -> None:
    list_benchmarks([root])
    inspect_benchmark("trivia", [root])
    parsed.clear()
    list_benchmarks([root])
    assert parsed == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 99, "files": {}}', b'{"format": 1, "files": {"x": 3}}', b"\xff"]
)
def test_a_broken_cache_is_no_cache(root: Path, home: Path, content: bytes) -> None:
    expected = list_benchmarks([root])
    (cache,) = (home / "cache/catalog").iterdir()
    cache.write_bytes(content)
    assert list_benchmarks([root]) == expected


def test_without_a_usable_home(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = list_benchmarks([root], cache=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "file"))
    assert list_benchmarks([root]) == expected


def test_two_writers(root: Path) -> None:
    expected = list_benchmarks([root], cache=False)
    outcomes: list[bool] = []
    threads = [threading.Thread(target=lambda: outcomes.append(list_benchmarks([root]) == expected)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 4
    assert list_benchmarks([root]) == expected


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "benchmarks/trivia/loop").symlink_to(root / "benchmarks")
    assert "trivia" in [entry.name for entry in list_benchmarks([root]).entries]


def test_nothing_heavy_is_imported(root: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from backend.catalog.benchmarks import list_benchmarks, inspect_benchmark;"
        f"roots = [Path({str(root)!r})]; list_benchmarks(roots); inspect_benchmark('trivia', roots);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], 'yaml' in sys.modules)"
    )
    for yaml_is_needed in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
        )
        assert done.stdout.strip() == f"[] {yaml_is_needed}"


def test_a_second_listing_reads_no_file(write, monkeypatch) -> None:
    roots = [
        write(
            "root",
            {
                "resources_servers/rs/configs/rs.yaml": "rs: {resources_servers: {rs: {entrypoint: app.py, domain: math}}}\n",
                "benchmarks/b/config.yaml": (
                    "config_paths: [resources_servers/rs/configs/rs.yaml]\nb_agent:\n  responses_api_agents:\n    simple_agent:\n"
                    "      entrypoint: app.py\n"
                    "      datasets:\n      - {name: b, type: benchmark, jsonl_fpath: x.jsonl, prepare_script: p.py}\n"
                ),
            },
        )
    ]
    first = list_benchmarks(roots)
    assert [entry.name for entry in first.entries] == ["b"]
    reads = []
    monkeypatch.setattr(scan, "_read", lambda path, read: reads.append(path))
    assert list_benchmarks(roots) == first
    assert reads == []
