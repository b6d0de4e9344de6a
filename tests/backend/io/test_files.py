"""Files that are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backend.errors import GymError
from backend.io.files import replacing
from backend.io.json_codec import dumps_ascii


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "sub" / "rows.jsonl"
    with replacing(target) as file:
        file.write(b"one\n")
    with pytest.raises(RuntimeError), replacing(target) as file:
        file.write(b"half")
        assert target.read_bytes() == b"one\n"
        raise RuntimeError
    assert target.read_bytes() == b"one\n"
    assert os.listdir(target.parent) == ["rows.jsonl"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GymError, match="cannot create the folder"), replacing(tmp_path / "file" / "rows.jsonl"):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(GymError, match="cannot write"), replacing(tmp_path / "folder") as file:
        file.write(b"x")


def test_a_line_is_ascii_with_spaces() -> None:
    assert dumps_ascii({"b": "é\u2028", "a": [1, 2]}) == b'{"b": "\\u00e9\\u2028", "a": [1, 2]}'
