"""Why a key has its value: everybody who set it, in the order of precedence, and what was found at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.cells import cell_len

from backend.cli.render_config import passed_on
from backend.config.config_types import AgentServerRef, BaseRunServerConfig, ModelServerRef, ResourcesServerRef
from backend.config.findings import Finding
from backend.config.nodes import PASSING_ON, KeyPath, Origin
from backend.config.resolve_view import Change, Entry, Step
from backend.config.schema import AGENTS, GLOBAL_KEYS, MODELS, RESOURCES, SERVER_TYPES
from backend.config.stages import STAGES
from backend.io.text import clean_line
from screens.config.tree_rows import held
from screens.widgets import glyphs
from screens.widgets.text_blocks import TextBlock

_WIDEST_PLACE = 44
_SHORT_VALUE = 40
_REFERENCES = {AGENTS: AgentServerRef, MODELS: ModelServerRef, RESOURCES: ResourcesServerRef}

Shown = Callable[[str], str]


def why_blocks(entry: Entry, findings: Iterable[Finding], shown: Shown) -> list[TextBlock]:
    """The blocks for a key: its chain, what became of it on the way, what it is taken for, and the findings at it."""
    return [*_chain(entry, shown), *_journey(entry), *_validation(entry), *(finding_block(each) for each in findings)]


def writers(entry: Entry) -> int:
    """How many wrote the key."""
    return sum(1 for step in entry.chain if step.origin.kind not in PASSING_ON)


def origin_of(entry: Entry, block: object) -> Origin | None:
    """The origin that a block of the pane is about; that of the value where it is about none."""
    if isinstance(block, tuple) and len(block) == 2 and block[0] == "step" and block[1] < len(entry.chain):
        return entry.chain[block[1]].origin
    return entry.origin


def finding_block(finding: Finding) -> TextBlock:
    """One finding with what helps."""
    sign = glyphs.current().failed if finding.severity == "error" else glyphs.current().warning
    first, _, rest = finding.message.partition("\n")
    lines = [rest, f"hint: {finding.hint}" if finding.hint else "", f"fix: {finding.fix}" if finding.fix else ""]
    return TextBlock(
        ("finding", finding.message), "\n".join(line for line in lines if line), f"{sign} {first}",
        kind="error" if finding.severity == "error" else "tool",
    )  # fmt: skip


def place_text(origin: Origin, shown: Shown) -> str:
    """Where a value is written down, as short as it can be said."""
    if origin.file:
        return shown(origin.file) + (f":{origin.line}" if origin.line else "")
    return origin.text.strip("()") or origin.kind


def _chain(entry: Entry, shown: Shown) -> Iterator[TextBlock]:
    winner = entry.winner
    places = [clean_line(place_text(step.origin, shown), 400) for step in entry.chain]
    width = min(_WIDEST_PLACE, max((cell_len(place) for place in places), default=0))
    for index, step in enumerate(entry.chain):
        if step.origin.kind in PASSING_ON:
            yield TextBlock(("step", index), "", f"     {_passed_on(step.origin, shown)}", kind="muted")
        else:
            yield _written(index, step, entry, step is winner, places[index], width, shown)


def _written(index: int, step: Step, entry: Entry, wins: bool, place: str, width: int, shown: Shown) -> TextBlock:
    value = shown(held(step.shape, step.value, secret=entry.secret)) or f"{step.value} keys"
    whole = shown(str(step.value)) if step.shape == "value" and isinstance(step.value, str) and not entry.secret else value
    is_short = cell_len(value) <= _SHORT_VALUE and "\n" not in whole
    number = f"L{step.layer}" if step.layer is not None else " "
    verdict = ("< wins" if glyphs.is_ascii() else "◀ wins") if wins else "overridden"
    return TextBlock(
        ("step", index),
        "" if is_short else whole,
        f"{number:<4} {place}{' ' * max(0, width - cell_len(place))}  {clean_line(value, _SHORT_VALUE)}",
        ", ".join(part for part in (step.effect, verdict) if part),
        kind="plain" if wins else "muted",
        folded=not wins,
    )


def _passed_on(origin: Origin, shown: Shown) -> str:
    where = f" ({place_text(origin, shown)})" if origin.file else ""
    plain = passed_on(Origin(origin.kind, origin.text))
    if origin.kind == "directive":
        verb = {"_inherit_from": "inherited through", "_copy": "copied through"}.get(origin.text.partition(":")[0], "through")
        plain = f"{verb} {origin.text}"
    return plain + where


def _journey(entry: Entry) -> Iterator[TextBlock]:
    for change in entry.changes:
        yield TextBlock(("change", change.stage), "", f"     {_change_text(change, entry)}", kind="muted")


def _change_text(change: Change, entry: Entry) -> str:
    what: str = change.kind
    if change.kind == "changed" and not entry.secret:
        before, after = (
            held(entry.shape if value is not None else "value", value, secret=False) for value in (change.before, change.after)
        )
        what = f"{clean_line(before, 60)} {glyphs.current().arrow} {clean_line(after, 60)}"
    return f"{'~' if change.kind == 'changed' else '+'} {STAGES.get(change.stage, change.stage)}: {what}"


def _validation(entry: Entry) -> Iterator[TextBlock]:
    text = validated_as(entry.path)
    if text:
        yield TextBlock("validated", "", f"     {text}", kind="muted")


def validated_as(path: KeyPath) -> str:
    """By what type a key is checked: fields of servers and references, and global keys that somebody reads."""
    if len(path) >= 4 and path[1] in SERVER_TYPES:
        field = str(path[3])
        if len(path) == 4 and field in BaseRunServerConfig.model_fields:
            return (
                f"validated as {_type_name(BaseRunServerConfig.model_fields[field].annotation)} by {BaseRunServerConfig.__name__}"
            )
        reference = next((model for kind, model in _REFERENCES.items() if field in (kind, kind.rstrip("s"))), None)
        if field in ("resources_server", "model_server"):
            reference = ResourcesServerRef if field == "resources_server" else ModelServerRef
        if reference is not None and len(path) <= 5:
            part = str(path[4]) if len(path) == 5 else ""
            return (
                f"validated as {'str' if part else 'a reference'} by {reference.__name__}" if part in ("", "name", "type") else ""
            )
        return f"read by the server of {path[1]}/{path[2]}"
    if path and path[0] in GLOBAL_KEYS:
        return "a global key"
    return ""


def _type_name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("backend.config.config_types.", "")
