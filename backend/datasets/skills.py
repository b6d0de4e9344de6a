"""Skills for agents: a folder whose every sub-folder has a `SKILL.md`; importable by existing code as `nemo_gym.skills`."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.config.yaml_source import parse_plain
from backend.errors import GymError, Place
from backend.io.roots import resolve_path, search_roots

__all__ = ["SkillsError", "skills_ref_of", "stage_skills"]

SKILL_FILE = "SKILL.md"
_FENCE = "---"
_HASH_DIGITS = 12


class SkillsError(GymError, ValueError):
    """A folder of skills is missing, or a skill in it is not described as it should be."""


def skills_ref_of(path: str, roots: Sequence[Path]) -> dict[str, Any]:
    """The stamp that rows of a run with `skills.path` get: `{path, hash, skills: [{name, description, version}]}`.

    `path` is as given, the hash covers all files of the folder. Raises `SkillsError` (a ValueError).
    """
    folder = _skills_folder(path, roots)
    skills = [_described(skill) for skill in _skill_folders(folder)]
    return {"path": path, "hash": folder_hash(folder), "skills": skills}


def folder_hash(folder: Path) -> str:
    """The first 12 hexadecimal digits of SHA-256 over all files, sorted: relative POSIX path, NUL, content, NUL."""
    digest = hashlib.sha256()
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:_HASH_DIGITS]


def stage_skills(path: str | Path, dest_skills_dir: str | Path) -> Path:
    """Copy the skills below `path` (looked for in the search roots) to `dest_skills_dir`, which must not be there yet."""
    folder = _skills_folder(path, search_roots())
    for skill in _skill_folders(folder):
        _described(skill)
    target = Path(dest_skills_dir)
    try:
        shutil.copytree(folder, target)
    except FileExistsError:
        raise SkillsError(
            "skills cannot be copied to a place that is there already", place=Place(str(target)), hint="name a new folder"
        ) from None
    except (OSError, shutil.Error) as error:
        raise SkillsError(f"skills cannot be copied: {error}", place=Place(str(target))) from error
    return target


def _skills_folder(path: str | Path, roots: Sequence[Path]) -> Path:
    folder = resolve_path(path, roots)
    if not folder.is_dir():
        raise SkillsError("the folder of skills is not there", place=Place(str(folder)), hint="set skills.path to a folder")
    return folder


def _skill_folders(folder: Path) -> list[Path]:
    skills = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    if not skills:
        raise SkillsError(
            "the folder of skills has no skill in it", place=Place(str(folder)), hint=f"a skill is a folder with a {SKILL_FILE}"
        )
    return skills


def _described(skill: Path) -> dict[str, Any]:
    """Name, description and version of a skill, from the front matter of its file."""
    file = skill / SKILL_FILE
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SkillsError(f"the skill cannot be read: {error}", place=Place(str(file))) from None
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), None)
    if not lines or lines[0].strip() != _FENCE or end is None:
        raise SkillsError(f"the skill has no front matter between two lines `{_FENCE}`", place=Place(str(file), 1))
    try:
        matter = parse_plain("\n".join(lines[1:end]), str(file))
    except GymError as error:
        raise SkillsError(f"the front matter is not YAML: {error.message}", place=Place(str(file))) from None
    name = matter.get("name")
    if not isinstance(name, str) or not name.strip():
        raise SkillsError("the front matter has no `name`", place=Place(str(file), 1, key="name"))
    metadata = matter.get("metadata")
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    return {"name": name, "description": matter.get("description"), "version": None if version is None else str(version)}
