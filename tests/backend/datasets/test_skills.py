from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from backend.datasets.skills import SkillsError, folder_hash, skills_ref_of, stage_skills


def skill(folder: Path, name: str, matter: str | None = None) -> None:
    (folder / name).mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: about {name}\n---\nbody\n" if matter is None else matter
    (folder / name / "SKILL.md").write_text(text, encoding="utf-8")


def test_the_stamp_of_rows(tmp_path: Path) -> None:
    skill(tmp_path / "s", "plain")
    skill(tmp_path / "s", "versioned", "\ufeff---\nname: other\nmetadata: {version: 2}\n---\n")
    (tmp_path / "s" / "plain" / "notes").mkdir()
    (tmp_path / "s" / "plain" / "notes" / "a.txt").write_bytes(b"\x00\xff")
    ref = skills_ref_of("s", [tmp_path])
    digest = hashlib.sha256()
    for name in ("plain/SKILL.md", "plain/notes/a.txt", "versioned/SKILL.md"):
        digest.update(name.encode() + b"\0" + (tmp_path / "s" / name).read_bytes() + b"\0")
    assert ref == {
        "path": "s",
        "hash": digest.hexdigest()[:12],
        "skills": [
            {"name": "plain", "description": "about plain", "version": None},
            {"name": "other", "description": None, "version": "2"},
        ],
    }
    (tmp_path / "s" / "plain" / "notes" / "a.txt").write_bytes(b"\x00")
    assert folder_hash(tmp_path / "s") != ref["hash"]


@pytest.mark.parametrize(
    ("matter", "said"),
    [
        ("no front matter", "front matter"),
        ("---\nname: a\n", "front matter"),
        ("---\ndescription: a\n---\n", "no `name`"),
        ("---\nname: [\n---\n", "not YAML"),
        ("", "front matter"),
    ],
)
def test_a_skill_that_is_not_described_is_named(tmp_path: Path, matter: str, said: str) -> None:
    skill(tmp_path / "s", "a", matter)
    with pytest.raises(SkillsError, match=said) as caught:
        skills_ref_of(str(tmp_path / "s"), ())
    assert isinstance(caught.value, ValueError)
    assert caught.value.place is not None
    assert str(caught.value.place.file).endswith("a/SKILL.md")


def test_a_folder_without_skills(tmp_path: Path) -> None:
    with pytest.raises(SkillsError, match="not there"):
        skills_ref_of("nowhere", [tmp_path])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SkillsError, match="no skill"):
        skills_ref_of("empty", [tmp_path])
    (tmp_path / "bare" / "a").mkdir(parents=True)
    with pytest.raises(SkillsError, match="cannot be read"):
        skills_ref_of("bare", [tmp_path])


def test_staging_copies_to_a_new_folder_only(tmp_path: Path) -> None:
    skill(tmp_path / "s", "a")
    target = stage_skills(tmp_path / "s", tmp_path / "out" / "skills")
    assert (target / "a" / "SKILL.md").read_text() == (tmp_path / "s" / "a" / "SKILL.md").read_text()
    with pytest.raises(SkillsError, match="there already"):
        stage_skills(tmp_path / "s", target)
    skill(tmp_path / "t", "bad", "nothing")
    with pytest.raises(ValueError, match="front matter"):
        stage_skills(tmp_path / "t", tmp_path / "never")
    assert not (tmp_path / "never").exists()
