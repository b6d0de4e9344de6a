"""Contents and arguments as text."""

from __future__ import annotations

from typing import Any

import pytest

from backend.rollouts.transcript_parts import arguments_text, content_body


@pytest.mark.parametrize(
    ("content", "body"),
    [
        ("text", "text"),
        (None, ""),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a\nb"),
        (["a", {"type": "text", "text": "b"}], "a\nb"),
        ({"type": "text", "text": "alone"}, "alone"),
        ([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}], "[image https://example.org/a.png]"),
        ([{"type": "input_image", "file_id": "f1"}], "[image f1]"),
        ([{"type": "input_file", "filename": "a.pdf", "file_data": "AAAA"}], "[file a.pdf]"),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], "[audio input_audio, 4 characters]"),
        ([{"type": "input_image"}], "[image]"),
        ([{"type": "odd", "x": 1}], '{\n  "type": "odd",\n  "x": 1\n}'),
        (3, "3"),
    ],
)
def test_contents(content: Any, body: str) -> None:
    assert content_body(content)[0] == body


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a":[1]}', ('{\n  "a": [\n    1\n  ]\n}', True)),
        ({"a": 1}, ('{\n  "a": 1\n}', True)),
        ("ls -l", ("ls -l", False)),
        ("12", ("12", False)),
        ('{"a":', ('{"a":', False)),
        (None, ("", False)),
    ],
)
def test_arguments(arguments: Any, shown: tuple[str, bool]) -> None:
    assert arguments_text(arguments) == shown
