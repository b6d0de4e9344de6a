from __future__ import annotations

from pathlib import Path

import pytest

from backend.config.errors import ConfigPathNotFoundError, MalformedConfigPathsError
from backend.config.findings import Findings
from backend.config.includes import load_files
from backend.config.nodes import Origin


def load(root: Path, *entries: str, findings: Findings | None = None):
    return load_files([(entry, Origin("flag", "--config")) for entry in entries], [root], findings or Findings())


def names(loaded) -> list[str]:
    return [source.path.name for source in loaded.sources]


def test_a_subtree_stays_together(write) -> None:
    root = write(
        {
            "A.yaml": "config_paths: [A1.yaml]",
            "A1.yaml": "k: 1",
            "B.yaml": "config_paths: [B1.yaml]",
            "B1.yaml": "config_paths: [B2.yaml]",
            "B2.yaml": "k: 2",
        }
    )
    loaded = load(root, "A.yaml", "B.yaml")
    assert names(loaded) == ["A1.yaml", "A.yaml", "B2.yaml", "B1.yaml", "B.yaml"]
    assert tuple(loaded.entries) == ("A.yaml", "B.yaml", "A1.yaml", "B1.yaml", "B2.yaml")


def test_a_file_with_two_includers_belongs_to_the_first_found(write) -> None:
    root = write({"A.yaml": "config_paths: [S.yaml]", "B.yaml": "config_paths: [S.yaml]", "S.yaml": ""})
    findings = Findings()
    assert names(load(root, "A.yaml", "B.yaml", findings=findings)) == ["S.yaml", "A.yaml", "B.yaml"]
    assert "'S.yaml' more than once" in findings.warnings[0].message


def test_circles_end_and_are_remarked_with_both_files(write) -> None:
    root = write({"x.yaml": "config_paths: [y.yaml]", "y.yaml": "config_paths: [x.yaml]", "z.yaml": "config_paths: [z.yaml]"})
    findings = Findings()
    assert names(load(root, "x.yaml", "z.yaml", findings=findings)) == ["y.yaml", "x.yaml", "z.yaml"]
    itself, circle = findings.warnings
    assert "'y.yaml' includes 'x.yaml'" in circle.message
    assert circle.place.file.endswith("y.yaml")
    assert "'z.yaml' includes itself" in itself.message


def test_entries_may_use_keys_of_their_own_file(write) -> None:
    root = write({"a.yaml": "folder: sub\nconfig_paths: ['${folder}/b.yaml']", "sub/b.yaml": ""})
    assert names(load(root, "a.yaml")) == ["b.yaml", "a.yaml"]


def test_all_missing_files_are_reported_at_once(write) -> None:
    root = write({"a.yaml": "\nconfig_paths: [bb.yaml, sub]\n", "b.yaml": "", "sub/c.yaml": ""})
    findings = Findings()
    load(root, "a.yaml", "none.yaml", findings=findings)
    first, second, third = findings.errors
    assert all(isinstance(error, ConfigPathNotFoundError | FileNotFoundError) for error in findings.errors)
    assert first.message == "config_paths entry 'none.yaml' was not found"
    assert first.place.file == "--config"
    assert first.details == ("Looked in:", f"  {root}/none.yaml")
    assert (second.place.line, second.place.column) == (2, 16)
    assert second.hint == "Did you mean `b.yaml`?"
    assert third.message == "config_paths entry 'sub' is a folder, not a configuration file"
    assert (third.nearest, third.fix) == ("sub/c.yaml", "config_paths: [sub/c.yaml]")


@pytest.mark.parametrize("value", ["x.yaml", "{a: 1}", "[1]", "[[a]]", "3"])
def test_malformed_lists(write, value: str) -> None:
    root = write({"a.yaml": f"config_paths: {value}"})
    findings = Findings()
    load(root, "a.yaml", findings=findings)
    assert isinstance(findings.errors[0], MalformedConfigPathsError)
    assert "'config_paths' must be a list of paths. Got: " in findings.errors[0].message


def test_empty_lists(write) -> None:
    root = write({"a.yaml": "config_paths: []", "b.yaml": "config_paths: null"})
    assert names(load(root, "a.yaml", "b.yaml")) == ["a.yaml", "b.yaml"]


def test_paths_that_moved(write) -> None:
    root = write({"responses_api_agents/tau2/configs/tau2.yaml": "k: 1"})
    findings = Findings()
    assert names(load(root, "responses_api_agents/tau2/configs/tau2_agent.yaml", findings=findings)) == ["tau2.yaml"]
    assert "deprecated" in findings.warnings[0].message
    assert findings.warnings[0].hint == "use 'responses_api_agents/tau2/configs/tau2.yaml'"
