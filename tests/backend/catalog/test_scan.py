from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from backend.catalog import scan as scan_module
from backend.catalog.facts import benchmark_facts, config_facts
from backend.catalog.kinds import WORKLOADS
from backend.catalog.listing import find_component, list_components, whole_catalog
from backend.catalog.scan import Scan
from backend.io.json_codec import loads


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose content was read since the test began."""
    seen: list[str] = []
    original = scan_module._read

    def counting(path: str, read):
        seen.append(path)
        return original(path, read)

    monkeypatch.setattr(scan_module, "_read", counting)
    return seen


def cache_files(home: Path) -> list[Path]:
    return sorted((home / "cache/catalog").iterdir())


def test_the_cache_spares_reading_until_a_file_changes(root: Path, read_files: list[str], home: Path) -> None:
    first = whole_catalog([root])
    assert len(read_files) > 8
    read_files.clear()
    assert whole_catalog([root]) == first
    assert read_files == []
    quiz = root / "resources_servers/quiz/configs/quiz.yaml"
    quiz.write_text(quiz.read_text().replace("knowledge", "translation"))
    changed = {(entry.kind, entry.name): entry for entry in whole_catalog([root]).entries}
    assert read_files == [str(quiz)]
    assert changed["benchmark", "trivia"].domain == "translation"
    assert changed["resources-server", "quiz"].domain == "translation"


def test_what_is_gone_goes_from_listing_and_cache(root: Path, home: Path) -> None:
    gone = root / "benchmarks/trivia/config.yaml"
    whole_catalog([root])
    gone.unlink()
    other = root / "benchmarks/lcb/v6/config.yaml"
    other.write_text(other.read_text() + "\n")
    assert "trivia" not in [entry.name for entry in whole_catalog([root]).entries]
    (cache,) = cache_files(home)
    assert str(gone) not in loads(cache.read_bytes())["files"]


def test_a_new_file_in_an_earlier_root_is_seen(root: Path, write) -> None:
    own = write("own", {"benchmarks/x/config.yaml": ""})
    assert find_component("benchmark", "trivia", [own, root]).domain == "knowledge"
    write("own", {"resources_servers/quiz/configs/quiz.yaml": "quiz_rs: {resources_servers: {quiz: {domain: safety}}}\n"})
    assert find_component("benchmark", "trivia", [own, root]).configs[0].parents[3] == own


@pytest.mark.parametrize("at", [1, 10**18])
def test_same_size_and_another_time_are_a_change(root: Path, at: int) -> None:
    path = root / "benchmarks/lcb/v6/config.yaml"
    whole_catalog([root])
    path.write_text(path.read_text().replace("coding", "safety"))
    os.utime(path, ns=(at, at))
    assert find_component("benchmark", "lcb/v6", [root]).domain == "safety"


def test_same_size_and_time_but_replaced_is_a_change(root: Path) -> None:
    path = root / "benchmarks/lcb/v6/config.yaml"
    before = path.stat()
    whole_catalog([root])
    path.write_text(path.read_text().replace("coding", "safety"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find_component("benchmark", "lcb/v6", [root]).domain == "safety"


def test_roots_share_their_caches(root: Path, write, read_files: list[str], home: Path) -> None:
    own = write("own", {"benchmarks/x/config.yaml": ""})
    whole_catalog([root])
    whole_catalog([own])
    read_files.clear()
    whole_catalog([own, root])
    assert read_files == []
    assert len(cache_files(home)) == 2


def test_a_folder_without_components_leaves_no_cache(tmp_path: Path, home: Path) -> None:
    whole_catalog([tmp_path])
    assert not (home / "cache/catalog").exists() or cache_files(home) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": 5}',
        b'{"format": 99, "files": {}, "derived": {}}',
        b'{"format": 5, "files": {"x": 3}, "derived": {}}',
        b'{"format": 5, "files": {}, "derived": []}',
        b"\xff",
    ],
)
def test_a_broken_cache_is_no_cache(root: Path, home: Path, content: bytes) -> None:
    expected = whole_catalog([root])
    (cache,) = cache_files(home)
    cache.write_bytes(content)
    assert whole_catalog([root]) == expected
    assert loads(cache.read_bytes())["format"] == scan_module.FORMAT


def test_without_a_usable_home(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = whole_catalog([root], cache=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GYM_TUI_HOME", str(tmp_path / "file"))
    assert whole_catalog([root]) == expected


def test_several_at_once(root: Path, read_files: list[str]) -> None:
    expected = whole_catalog([root], cache=False)
    outcomes: list[bool] = []
    threads = [threading.Thread(target=lambda: outcomes.append(whole_catalog([root]) == expected)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 4
    read_files.clear()
    assert whole_catalog([root]) == expected
    assert read_files == []


def test_two_commands_keep_each_others_facts(root: Path, read_files: list[str]) -> None:
    with Scan([root]) as first:
        first.facts(str(root / "benchmarks/trivia/config.yaml"), config_facts)
        list_components(["model"], [root])
    read_files.clear()
    with Scan([root]) as scan:
        scan.facts(str(root / "benchmarks/trivia/config.yaml"), config_facts)
        scan.facts(str(root / "responses_api_models/openai_model/configs/openai_model.yaml"), config_facts)
    assert read_files == []


def test_no_secret_is_kept(root: Path, write, home: Path) -> None:
    write(
        "root",
        {
            "environments/walk/config.yaml": (
                "api_key: hidden-1\nwalk:\n  resources_servers:\n    walk:\n      entrypoint: app.py\n      domain: math\n"
                "      token: hidden-2\n      headers: {name: Authorization, value: hidden-3}\n      url: https://u:hidden-4@host/\n"
                "      key: ${oc.env:KEY,hidden-5}\n      args: [hidden-6]\n"
            )
        },
    )
    whole_catalog([root])
    (cache,) = cache_files(home)
    content = cache.read_text()
    assert "math" in content
    assert "hidden" not in content
    assert "sk-do-not-keep" not in content
    assert cache.stat().st_mode & 0o077 == 0


def test_a_file_that_cannot_declare_a_benchmark_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: [")
    with Scan([tmp_path]) as scan:
        assert scan.facts(str(path), benchmark_facts) == {"benchmarks": 0, "unparsed": True}
        assert "broken" in (scan.facts(str(path), config_facts) or {})


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
        + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 8)}]\n" for old, new in zip("bcdefgh", "cdefghi", strict=True)),
        "a: &a {b: *a}\n",
        "a: " + "[" * 900 + "]" * 900,
        "? [a, b]\n: c\n",
        "a: !!python/object:os.system {}\n",
        "a\n---\nb\n",
    ],
    ids=["bomb", "circle", "depth", "list as key", "tag", "two documents"],
)
def test_files_that_expand_without_end_are_broken(root: Path, text: str) -> None:
    (root / "benchmarks/trivia/config.yaml").write_text(text + "# type: benchmark\n")
    entries = {entry.name: entry for entry in list_components(WORKLOADS, [root]).entries}
    assert entries["trivia"].broken is not None
    assert entries["walk"].broken is None


def test_what_is_no_regular_file_is_not_read(root: Path) -> None:
    path = root / "benchmarks/plain/config.yaml"
    path.unlink()
    os.mkfifo(path)
    assert "plain" not in [entry.name for entry in list_components(WORKLOADS, [root]).entries]
    assert find_component("benchmark", "plain", [root]) is None


def test_a_file_that_may_not_be_read_is_broken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiz = root / "resources_servers/quiz/configs/quiz.yaml"

    def guarded(path: str, mode: str = "r") -> IO[Any]:  # a real file mode does not stop root
        if path == str(quiz):
            raise PermissionError(13, "Permission denied")
        return open(path, mode)

    monkeypatch.setattr(scan_module, "open", guarded, raising=False)
    assert find_component("resources-server", "quiz", [root]).broken.message == "cannot read the file: Permission denied"
    assert find_component("resources-server", "quiz/hard", [root]).broken is None
