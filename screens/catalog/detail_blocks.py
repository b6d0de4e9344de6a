"""The detail pane's text: four tabs on one component, each as blocks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.catalog.entries import CatalogEntry, Need
from backend.cli.commands import COMMANDS
from screens.catalog.arranging import Component, component_key
from screens.catalog.finding import FoundRuns
from screens.catalog.links import Jump, ShowRun, TypeCommand, composition, users_of
from screens.catalog.picks import was_used
from screens.catalog.reading import DataFact, Reading, ShownFile
from screens.widgets import formatting, glyphs
from screens.widgets.scores import score_text
from screens.widgets.text_blocks import TextBlock
from screens.widgets.text_tables import table

TABS = {"readme": "Readme", "config": "Config", "data": "Data", "links": "Links"}
MOST_LINKS = 40
MOST_RUNS = 8
_PATH_FACTS = frozenset(("config", "path", "manifest"))
_TOLD_ELSEWHERE = frozenset(("hides", "broken"))
_SHORT_LABELS = {"resources servers": "servers"}

ShownPath = Callable[[Path], str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a component's text says beyond its own files."""

    components: Sequence[Component]
    runs: FoundRuns | None
    """None while they are looked for."""
    now: float
    shown_path: ShownPath


def tab_blocks(tab: str, reading: Reading, around: Surroundings) -> list[TextBlock]:
    """The blocks of one of `TABS`. Heads without a body have a link of `links` as their key."""
    make = {"readme": _readme, "config": _config, "data": _data, "links": _links}[tab]
    return list(make(reading, around))


def file_under(reading: Reading, key: Hashable, tab: str = "") -> tuple[Path, int | None]:
    """The file that the block with this key shows, else what `tab` is about, else the component's own; and the line where that is broken."""
    entry, readme, broken = reading.entry, reading.readme, reading.entry.broken
    shown = [*([readme] if readme else []), *reading.configs]
    path = next((file.path for file in shown if key == _file_key(file)), None)
    if path is None and broken is not None and broken.file:
        path = Path(broken.file)
    elif path is None and tab == "readme" and readme is not None:
        path = readme.path
    path = path or (reading.configs[0].path if reading.configs else entry.path)
    return path, broken.line if broken is not None and broken.file == str(path) else None


def _readme(reading: Reading, around: Surroundings) -> Iterator[TextBlock]:
    yield from _broken(reading, around.shown_path)
    yield _about(reading, around.shown_path)
    yield from _needs(reading, around.shown_path)
    readme = reading.readme
    if readme is None:
        yield TextBlock("no-readme", head="has no README.md", kind="muted", rule=True)
    else:
        yield TextBlock(_file_key(readme), readme.text, readme.path.name, readme.problem, markdown=True)


def _config(reading: Reading, around: Surroundings) -> Iterator[TextBlock]:
    yield from _broken(reading, around.shown_path)
    for number, file in enumerate(reading.configs):
        head = around.shown_path(file.path)
        note = file.problem or ("" if number == 0 or reading.entry.kind == "agent" else "merged before")
        kind = "error" if file.problem and not file.text else "plain"
        yield TextBlock(_file_key(file), _numbered(file.text), head, note, kind, folded=number > 0)


def _data(reading: Reading, around: Surroundings) -> Iterator[TextBlock]:
    for number, fact in enumerate(reading.data):
        dataset = fact.dataset
        signs = glyphs.current()
        missing = dataset.file is None
        size = "missing" if missing else formatting.joined((_rows(fact), formatting.byte_size(fact.size)), " · ")
        rows = [
            ["file", dataset.path or signs.nothing],
            ["type", dataset.type],
            ["declared by", dataset.declared_by],
            ["prompt", dataset.prompt_config or ""],
            ["repeats", "" if dataset.num_repeats is None else str(dataset.num_repeats)],
            ["licence", dataset.license or ""],
            ["made by", dataset.prepare_script or ""],
        ]
        sign = f"{signs.warning} " if missing else ""
        yield TextBlock(
            ("data", number), table([row for row in rows if row[1]]), sign + dataset.name, size, "error" if missing else "plain"
        )
        if fact.first_row:
            yield TextBlock(("row", number), fact.first_row, "first row", kind="result", folded=len(reading.data) > 1)
    left = len(reading.entry.datasets) - len(reading.data)
    if left > 0:
        yield TextBlock("more-data", head=f"{left} more data sets", kind="muted", rule=True)
    if not reading.entry.datasets:
        yield TextBlock("no-data", head="declares no data", kind="muted", rule=True)


def _links(reading: Reading, around: Surroundings) -> Iterator[TextBlock]:
    entry = reading.entry
    yield from _broken(reading, around.shown_path)
    yield from _composition(entry, around.components)
    yield from _needs(reading, around.shown_path)
    users = users_of(entry, around.components)
    if users:
        yield _title("users", f"Used by {formatting.count(len(users))}")
        yield from (_jump("user", other.described_kind.short, other.name, component_key(other)) for other in users[:MOST_LINKS])
        if len(users) > MOST_LINKS:
            yield TextBlock("more-users", head=f"and {formatting.count(len(users) - MOST_LINKS)} more", kind="muted")
    yield from _runs(entry, around)
    if entry.shadowed:
        rows = [["used", around.shown_path(entry.path)], *(["hidden", around.shown_path(path)] for path in entry.shadowed)]
        yield TextBlock("hides", table(rows), "Several have this name", "the first search folder wins", "tool")
    example = reading.details.usage_example
    if example:
        yield TextBlock("example", example, "To try it")


def _broken(reading: Reading, shown_path: ShownPath) -> Iterator[TextBlock]:
    broken = reading.entry.broken
    if broken is None:
        return
    place = broken.place
    where = ""
    if place.file:
        spot = [f"line {place.line}"] if place.line else []
        spot += [f"column {place.column}"] if place.line and place.column else []
        where = ", ".join([shown_path(Path(place.file)), *spot])
    signs = glyphs.current()
    lines = [f"{signs.cursor if number == broken.line else ' '} {number:>4}  {text}" for number, text in reading.around]
    body = "\n".join([broken.message, *([where] if where else []), *([""] if lines else []), *lines])
    yield TextBlock("broken", body, f"{signs.warning} Broken", "O opens it in your editor", "error")


def _about(reading: Reading, shown_path: ShownPath) -> TextBlock:
    entry = reading.entry
    facts = [(label, value) for label, value in reading.details.facts if label not in _TOLD_ELSEWHERE]
    rows = [
        ["", entry.description or ""],
        ["good for", entry.value or ""],
        ["domain", entry.domain or ""],
        *(
            [_SHORT_LABELS.get(label, label), shown_path(Path(value)) if label in _PATH_FACTS else value]
            for label, value in facts
        ),
        ["loaded by", f"{entry.flag} {entry.selector}" if entry.flag else ""],
    ]
    description = [row[1] for row in rows[:1] if row[1]]
    return TextBlock("about", "\n".join([*description, table([row for row in rows[1:] if row[1]])]), "About")


def _needs(reading: Reading, shown_path: ShownPath) -> Iterator[TextBlock]:
    needs = reading.details.needs
    if not needs:
        return
    rows = [[need.name, need.message] for need in needs]
    files = {need.place.file for need in needs if need.place and need.place.file}
    note = shown_path(Path(next(iter(files)))) if len(files) == 1 and len(needs) == 1 else ""
    yield TextBlock("needs", table(rows), "Needs", note, "tool")
    for command in dict.fromkeys(filter(None, map(_there, needs))):
        yield TextBlock(TypeCommand(command[1:]), head=" ".join(command), head_right=f"{glyphs.current().enter} command line")


def _there(need: Need) -> tuple[str, ...] | None:
    """The command that brings what is needed, if this program has it."""
    command = need.command
    known = command and any(command[1 : 1 + len(each.path)] == each.path for each in COMMANDS)
    return command if known else None


def _composition(entry: CatalogEntry, components: Sequence[Component]) -> Iterator[TextBlock]:
    parts = list(composition(entry, components))
    models = list(dict.fromkeys(server.model_server for server in entry.agents if server.model_server))
    instances = {server.instance for server in entry.servers}
    if not parts and not models:
        return
    yield _title("composition", "Composition")
    for number, part in enumerate(parts):
        role = _ROLES.get(part.server.type, part.server.type)
        name = f"{part.server.implementation}  {part.server.instance}"
        if part.target is None:
            yield TextBlock(("part", number), head=_link_head(role, name))
        else:
            yield _jump(part.server.instance, role, name, part.target)
    for instance in models:
        if instance not in instances:
            yield TextBlock(
                ("model", instance), head=_link_head("model", "chosen at run time"), head_right=instance, kind="muted"
            )


_ROLES = {"responses_api_agents": "agent", "resources_servers": "rs", "responses_api_models": "model"}


def _runs(entry: CatalogEntry, around: Surroundings) -> Iterator[TextBlock]:
    if entry.flag is None:
        return
    if around.runs is None:
        yield TextBlock("runs", head=f"Used in {glyphs.current().ellipsis}", kind="muted", rule=True)
        return
    runs = [run for run in around.runs.runs if was_used(entry, run)]
    more = "" if around.runs.all_of_them else " or more"
    count = f"{formatting.count(len(runs))}{more} run{'' if len(runs) == 1 and not more else 's'}"
    yield _title("runs", f"Used in {count}" if runs or more else "Used in no run below this folder")
    for run in runs[:MOST_RUNS]:
        age = formatting.age(None if run.when is None else around.now - run.when)
        score = f"{score_text(run.headline)} {glyphs.current().enter}"
        yield TextBlock(ShowRun(run.paths.rollouts), head=_link_head(age, run.name), head_right=score)


def _title(key: str, text: str) -> TextBlock:
    return TextBlock(("title", key), head=text, rule=True)


def _jump(role: str, label: str, name: str, target: tuple[str, str]) -> TextBlock:
    return TextBlock(Jump(role, target), head=_link_head(label, name), head_right=f"{glyphs.current().enter} jump")


def _link_head(label: str, name: str) -> str:
    return f"{label:<8}  {name}"


def _file_key(file: ShownFile) -> Hashable:
    return "file", str(file.path)


def _numbered(text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:>{width}}  {line}" for number, line in enumerate(lines, 1))


def _rows(fact: DataFact) -> str:
    if fact.rows is None:
        return ""
    return "1 row" if fact.rows == 1 else f"{formatting.count(fact.rows)} rows"
