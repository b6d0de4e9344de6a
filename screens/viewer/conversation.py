"""A rollout as blocks of text: the conversation, the raw record, and what stands beside it. Pure; made in threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backend.io.json_codec import dumps_indented, loads
from backend.rollouts.rollout_facts import RowPlace, Unreadable
from backend.rollouts.rollout_file import RolloutFile
from backend.rollouts.rollout_record import plain
from backend.rollouts.transcript import Kind, Transcript, Turn, transcript
from backend.rollouts.transcript_facts import Field, facts, model_calls, verifier_fields
from screens.widgets import glyphs
from screens.widgets.formatting import byte_size, compact, count, score, short_time
from screens.widgets.text_blocks import TextBlock

_KINDS = {
    Kind.SYSTEM: "system",
    Kind.DEVELOPER: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.REASONING: "reasoning",
    Kind.TOOL_CALL: "tool",
    Kind.TOOL_RESULT: "result",
    Kind.OTHER: "plain",
    Kind.FAILURE: "error",
}
_FOLDED = (Kind.SYSTEM, Kind.DEVELOPER, Kind.REASONING)
_MARKDOWN = (Kind.USER, Kind.ASSISTANT)
_NAME_WIDTH = 10
_SHORT_NAMES = {
    "temperature": "temp",
    "max_output_tokens": "max out",
    "tokens in": "in",
    "tokens out": "out",
    "task source": "source",
}
_LARGEST_ARGUMENTS = 1 << 18
_END = "end"


@dataclass(frozen=True, slots=True)
class Page:
    """All that is shown of one row."""

    place: RowPlace
    task: int | str | None
    rollout: int | str | None
    reward: float | None
    failure: str | None
    transcript: Transcript
    conversation: tuple[TextBlock, ...]
    reward_block: TextBlock
    facts_block: TextBlock
    unreadable: Unreadable | None = None


def read_page(file: RolloutFile, row: int) -> Page:
    """The page of a row. Raises IndexError when the row is gone."""
    place, seen, record = file.place(row), file.facts(row), file.record(row)
    if isinstance(record, Unreadable):
        title = "too big to be shown whole" if record.too_big else f"row {place.line} unreadable"
        nothing = TextBlock("facts", no_head=True)
        block = TextBlock("unreadable", _unreadable_text(record), f"{glyphs.current().warning} {title}", kind="error")
        head = TextBlock(
            "head", record.head.decode("utf-8", "replace"), "beginning of the row", byte_size(place.size), gutter="┃"
        )
        scored = _lines([("reward", score(seen.reward))] if record.too_big else [])
        return Page(
            place, seen.task, seen.rollout, seen.reward, seen.failure, Transcript(), (block, head),
            TextBlock("reward", scored, no_head=True), nothing, record,
        )  # fmt: skip
    spoken = transcript(record)
    return Page(
        place,
        seen.task,
        seen.rollout,
        seen.reward,
        seen.failure,
        spoken,
        tuple(blocks_of(spoken)),
        TextBlock("reward", _field_lines(verifier_fields(record)), no_head=True, whole=True),
        TextBlock("facts", _facts_text(record), no_head=True, whole=True),
    )


def raw_blocks(file: RolloutFile, row: int) -> tuple[TextBlock, ...]:
    """The record as laid-out JSON; of what is no record, the bytes as they are."""
    return (TextBlock("raw", json_text(file, row), no_head=True, whole=True),)


def json_text(file: RolloutFile, row: int) -> str:
    """A row as JSON of several lines; what is no record or too big as the bytes that are shown of it."""
    record = file.record(row)
    if isinstance(record, Unreadable):
        return record.head.decode("utf-8", "replace")
    try:
        return dumps_indented(record).decode()
    except ValueError:  # nested beyond what can be laid out
        return file.raw(row).decode("utf-8", "replace")


def blocks_of(spoken: Transcript) -> list[TextBlock]:
    """One block per turn, and a rule that says how it ended."""
    blocks = [_block(number, turn) for number, turn in enumerate(spoken.turns)]
    if spoken.tools:
        blocks.insert(
            0, TextBlock("tools", ", ".join(spoken.tools), "tools", f"{count(len(spoken.tools))} offered", "muted", folded=True)
        )
    if spoken.end:
        blocks.append(TextBlock(_END, head=f"{glyphs.current().rule * 2} end: {spoken.end}", kind="muted", rule=True))
    if not spoken.turns:
        blocks.append(
            TextBlock("nothing", "the record holds no conversation; v shows it as JSON", "nothing was said", kind="muted")
        )
    return blocks


def _block(number: int, turn: Turn) -> TextBlock:
    head = f"{turn.kind}  {turn.title}" if turn.title else str(turn.kind)
    argument = _only_argument(turn)
    if argument is not None:
        head += f" ({argument[0]})"
    remarks = []
    if turn.orphan:
        remarks.append("no result" if turn.kind is Kind.TOOL_CALL else "orphan: no call")
    if turn.refused:
        remarks.append("refused")
    if turn.error:
        remarks.append("error")
    if turn.call_id and turn.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
        remarks.append(turn.call_id)
    if turn.tokens is not None:
        remarks.append(f"{count(turn.tokens)} tok")
    is_bad = turn.error or (turn.orphan and turn.kind is Kind.TOOL_RESULT)
    return TextBlock(
        number,
        shown_body(turn),
        f"{glyphs.current().warning} {head}" if is_bad else head,
        "  ".join(remarks),
        "error" if turn.error else _KINDS[turn.kind],
        folded=turn.kind in _FOLDED,
        gutter=glyphs.current().gutter if turn.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT) else "",
        markdown=turn.kind in _MARKDOWN and not turn.is_json,
    )


def repeats_line(outcomes: Sequence[str], current: int | None) -> str:
    """The rewards of a task's repeats, the present one in brackets."""
    shown = (f"[{text}]" if index == current else text for index, text in enumerate(outcomes))
    return _lines([("repeats", " ".join(shown))])


def _unreadable_text(record: Unreadable) -> str:
    what = "o shows it whole in the pager" if record.too_big else "v shows its bytes, o the whole of it in the pager"
    return f"{record.reason}\n{what}"


def _facts_text(record: Mapping[str, Any]) -> str:
    calls = [
        (str(number), "  ".join(filter(None, (short_time(call.seconds), f"{compact(call.output_tokens)} tok", call.status))))
        for number, call in enumerate(model_calls(record), 1)
    ]
    text = _field_lines([replace(field, name=_SHORT_NAMES.get(field.name, field.name)) for field in facts(record)], 6)
    return text + "\n\nmodel calls\n" + _lines(calls, 2) if calls else text


def _field_lines(fields: Sequence[Field], least: int = _NAME_WIDTH) -> str:
    return _lines([("  " * field.depth + field.name, field.text) for field in fields], least)


def shown_body(turn: Turn) -> str:
    """The body of a turn as it is shown."""
    argument = _only_argument(turn)
    return turn.body if argument is None else argument[1]


def _only_argument(turn: Turn) -> tuple[str, str] | None:
    """Name and text of the argument of a call that has just one, a text: code reads better without escapes."""
    if turn.kind is not Kind.TOOL_CALL or not turn.is_json or len(turn.body) > _LARGEST_ARGUMENTS:
        return None
    try:
        arguments = loads(turn.body)
    except ValueError:
        return None
    if not isinstance(arguments, dict) or len(arguments) != 1:
        return None
    ((name, text),) = arguments.items()
    return (name, text) if isinstance(text, str) else None


def _lines(pairs: Sequence[tuple[str, str]], least: int = _NAME_WIDTH) -> str:
    """Names and values in two columns; a value of several lines goes on under its name."""
    width = max([least, *(len(name) for name, _ in pairs if len(name) <= 2 * _NAME_WIDTH)])
    return "\n".join(f"{name:<{width}}  {plain(value)}".rstrip() for name, value in pairs)
