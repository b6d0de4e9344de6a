"""Prompt templates: filling, what is refused, files, and whole data files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.datasets.prompt import (
    PromptConfig,
    PromptConfigError,
    PromptConflictError,
    PromptFieldError,
    PromptTemplateError,
    apply_prompt_to_row,
    fill_prompt,
    load_prompt_config,
    materialize_prompts,
    validate_prompt_compatibility,
)
from backend.errors import Place
from backend.io.jsonl import JsonlError

ROW = {"question": "2+2 {x}?", "meta": {"level": 3, "tags": ["a", "b"]}, "w": 0.5}


def test_the_documented_syntax() -> None:
    prompt = PromptConfig(
        system="Reply with one number. Use {{braces}} literally.",
        user="Q: {question} (level {meta[level]}, weight {w:.2f}, {meta[tags][1]!r})",
    )
    assert fill_prompt(prompt, ROW) == [
        {"role": "system", "content": "Reply with one number. Use {braces} literally."},
        {"role": "user", "content": "Q: 2+2 {x}? (level 3, weight 0.50, 'b')"},
    ]


def test_an_empty_system_message_is_one() -> None:
    assert [message["role"] for message in fill_prompt(PromptConfig(user="u", system=""), {})] == ["system", "user"]
    assert [message["role"] for message in fill_prompt(PromptConfig(user="u"), {})] == ["user"]


@pytest.mark.parametrize("template", ["{}", "{0}", "{question", "question}", "{w:zz}", "{meta:>3}"])
def test_malformed_templates(template: str) -> None:
    with pytest.raises(PromptTemplateError, match="user template"):
        fill_prompt(PromptConfig(user=template), ROW)


@pytest.mark.parametrize("template", ["{question.__class__}", "{w:{meta.__len__}}", "{meta[level].__class__.__mro__}", "{w._x}"])
def test_private_attributes_are_refused(template: str) -> None:
    with pytest.raises(PromptTemplateError, match="private attribute"):
        fill_prompt(PromptConfig(user=template), ROW)


@pytest.mark.parametrize("field", ["questin", "meta[levl]", "meta.level", "question[a]", "meta[tags][7]"])
def test_a_missing_field_is_named_with_the_place(field: str) -> None:
    with pytest.raises(PromptFieldError) as caught:
        fill_prompt(PromptConfig(user=f"{{{field}}}"), ROW, place=Place("rows.jsonl", 7))
    assert isinstance(caught.value, KeyError)
    text = str(caught.value)
    assert text.startswith("rows.jsonl:7: ") and f"'{field}'" in text and "question, meta, w" in text


def test_the_nearest_field_is_suggested() -> None:
    with pytest.raises(PromptFieldError) as caught:
        fill_prompt(PromptConfig(user="{questin}"), ROW)
    assert caught.value.hint == "Did you mean `question`?"


TEXTS = st.text(st.characters(exclude_characters="{}"), max_size=30)


@given(TEXTS, TEXTS, st.text(max_size=30))
def test_text_is_kept_and_substituted_text_is_not_expanded(before: str, after: str, value: str) -> None:
    (message,) = fill_prompt(PromptConfig(user=f"{before}{{field}}{after}"), {"field": value})
    assert message["content"] == before + value + after


def test_applying_keeps_other_parameters_and_the_row() -> None:
    row = {"q": "x", "responses_create_params": {"temperature": 0.5, "input": []}}
    applied = apply_prompt_to_row(row, PromptConfig(user="{q}"))
    assert applied["responses_create_params"] == {"temperature": 0.5, "input": [{"role": "user", "content": "x"}]}
    assert row == {"q": "x", "responses_create_params": {"temperature": 0.5, "input": []}}
    assert apply_prompt_to_row(PromptConfig(user="{q}"), row) == applied


@pytest.mark.parametrize("params", [None, [], "x"])
def test_parameters_that_are_no_object_are_replaced(params: Any) -> None:
    applied = apply_prompt_to_row({"responses_create_params": params}, PromptConfig(user="u"))
    assert applied["responses_create_params"] == {"input": [{"role": "user", "content": "u"}]}


def test_all_rows_with_their_own_input_are_named() -> None:
    rows: list[Any] = [{}, {"responses_create_params": {"input": "x"}}, {"responses_create_params": {"input": []}}]
    with pytest.raises(PromptConflictError, match=r"Violating rows: \[1, 3\]"):
        validate_prompt_compatibility([*rows, rows[1]])
    validate_prompt_compatibility(rows[:1])
    validate_prompt_compatibility(rows=[{"q": 1}], prompt_config=PromptConfig(user="{q}"))
    with pytest.raises(ValueError, match=r"\[0\]"):
        validate_prompt_compatibility(rows[1:2], PromptConfig(user="{q}"))


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("user: one\nother: ignored\n")
    assert load_prompt_config("p.yaml", [tmp_path]) == PromptConfig(user="one")
    assert load_prompt_config(file) is load_prompt_config("p.yaml", [tmp_path])
    file.write_text("user: two\nsystem: s\n")
    os.utime(file, ns=(1, 1))
    assert load_prompt_config(str(file)) == PromptConfig(user="two", system="s")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("system: s\n", "no `user`"),
        ("usr: x\n", "rename `usr` to `user`"),
        ("user: 3\n", "needs a text"),
        ("user: u\nsystem: [1]\n", "`system`"),
        ("- user\n", "p.yaml"),
        ("user: [\n", "p.yaml"),
        ("", "p.yaml"),
    ],
)
def test_a_bad_prompt_file(content: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(ValueError, match=r"p\.yaml") as caught:
        load_prompt_config("p.yaml", [tmp_path])
    assert named in str(caught.value)


def test_a_missing_prompt_file(tmp_path: Path) -> None:
    with pytest.raises(PromptConfigError, match=r"cannot read the prompt file no.yaml"):
        load_prompt_config("no.yaml", [tmp_path])


def materialize(folder: Path, rows: str) -> int:
    (folder / "rows.jsonl").write_text(rows, "utf-8")
    (folder / "p.yaml").write_text('user: "{q}"\n')
    return materialize_prompts("rows.jsonl", "p.yaml", str(folder / "new" / "out.jsonl"), roots=[folder])


def test_materialize(tmp_path: Path) -> None:
    assert materialize(tmp_path, '{"q": "é"}\n\n{"q": "b", "responses_create_params": {"top_p": 1}}\n') == 2
    lines = (tmp_path / "new" / "out.jsonl").read_text("ascii").splitlines()
    used = json.dumps(str(tmp_path / "p.yaml"))
    assert lines[0] == (
        '{"q": "\\u00e9", "responses_create_params": {"input": [{"role": "user", "content": "\\u00e9"}]}, '
        f'"prompt_config_used": {used}}}'
    )
    assert len(lines) == 2


def test_materialize_finds_files_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"q": "a"}\n')
    (tmp_path / "p.yaml").write_text('user: "{q}?"\n')
    materialize_prompts(input_jsonl="rows.jsonl", prompt_config="p.yaml", output_jsonl="out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == (
        '{"q": "a", "responses_create_params": {"input": [{"role": "user", "content": "a?"}]}, '
        f'"prompt_config_used": "{tmp_path}/p.yaml"}}\n'
    )


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ('{"q": "a"}\n{"responses_create_params": {"input": "x"}}\n', PromptConflictError),
        ('{"q": "a"}\n{"z": 1}\n', PromptFieldError),
        ('{"q": "a"}\n{"q": \n', JsonlError),
    ],
)
def test_nothing_is_written_when_a_row_fails(rows: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error, match=r"rows\.jsonl"):
        materialize(tmp_path, rows)
    assert list((tmp_path / "new").iterdir()) == []
