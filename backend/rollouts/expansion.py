"""From input rows to the rows of a run: prompts, agents, repeats, numbering, seeds.

Two passes over the input, so that memory grows with the number of different rows and not with their content: `plan_expansion` checks
every row and reports all problems of a kind at once, `ExpansionPlan.rows` reads again and yields the expanded rows one by one.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any

from backend.datasets.own_input import has_own_input, prompt_conflict
from backend.errors import Place, closest, name_some
from backend.io.row_keys import AGENT_REF, ROLLOUT, SKILLS_REF, TASK, TASK_SOURCE
from backend.rollouts.compact_numbers import CompactNumbers
from backend.rollouts.expansion_options import DEFAULT, ExpansionOptions
from backend.rollouts.input_rows import ExpansionError, RowFieldError, RowSource, SourceRow


@dataclass(frozen=True, slots=True)
class ExpansionPlan:
    """A checked input and how it becomes rollouts."""

    source: RowSource
    options: ExpansionOptions
    input_rows: int
    tasks: int
    duplicate_rows: int
    """Rows equal to an earlier one; they add rollouts to its task."""
    planned: Mapping[tuple[str | None, str | None], int]
    """Rollouts by agent and `task_source`; an agent of None still has to be found from the source."""
    baked_rows: int
    """Rows routed by an `agent_ref` of their own, without a `task_source`."""
    warnings: tuple[str, ...]
    _ordinals: CompactNumbers = field(repr=False)
    """The different rows without a task index, in order of appearance, by digest."""
    _given: CompactNumbers = field(repr=False)
    """Task indices that rows bring."""
    _repeated: frozenset[int] = field(repr=False)
    """Digests and given indices of the tasks that several rows belong to."""

    @property
    def rollouts(self) -> int:
        """How many rows `rows` yields."""
        return sum(self.planned.values())

    def rows(self, agents_of_sources: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """The expanded rows, in input order; each has a top-level object, parameters and metadata of its own.

        `agents_of_sources` names the agent of each `task_source` whose rows have none; without it these rows keep having none.
        """
        numbers = _free_numbers(len(self._ordinals), self._given)
        next_rollout: dict[int, int] = {}
        for source in islice(self.source(), self.options.limit):
            routed = _route(source, self.options)
            key, task = self._task_of(source, numbers)
            rollout = next_rollout.get(task, 0)
            for target in routed.targets:
                agent = target
                if agent is None and agents_of_sources is not None:
                    agent = agents_of_sources[str(routed.task_source)]
                for _ in range(_repeats(target, routed, self.options)[0]):
                    yield _copy(routed.row, agent, task, rollout, self.options)
                    rollout += 1
            if key in self._repeated:
                next_rollout[task] = rollout

    def _task_of(self, source: SourceRow, numbers: Sequence[int]) -> tuple[int, int]:
        """What makes the row's task one, and the task's number."""
        given = source.value.get(TASK)
        if given is not None:
            return int(given), int(given)
        digest = _digest(source)
        ordinal = self._ordinals.get(digest)
        if ordinal is None:
            raise ExpansionError("the input changed while it was being read", place=source.place, hint="start again")
        return digest, numbers[ordinal]


def plan_expansion(source: RowSource, options: ExpansionOptions) -> ExpansionPlan:
    """Check all rows of `source` against `options`.

    Raises a GymError that is also a ValueError or KeyError: rows without an agent, agents without a number of repeats and rows with
    both an input and a prompt are named all at once; of other problems the first is, with its file and line.
    """
    findings = _Findings(options)
    for row in islice(source(), options.limit):
        findings.add(row)
    findings.raise_collected()
    return ExpansionPlan(
        source=source,
        options=options,
        input_rows=findings.rows,
        tasks=len(findings.given) + len(findings.ordinals),
        duplicate_rows=findings.numbered - len(findings.ordinals),
        planned=findings.planned,
        baked_rows=findings.baked,
        warnings=tuple(findings.warnings()),
        _ordinals=findings.ordinals,
        _given=findings.given,
        _repeated=frozenset(findings.repeated),
    )


@dataclass(frozen=True, slots=True)
class _Routed:
    """A row with prompt, agent and parameters applied."""

    row: dict[str, Any]
    own_agent: str | None
    """What the row itself says."""
    agent: str | None
    """After `agent_map`."""
    task_source: str | None
    targets: tuple[str | None, ...]
    """The agents that run it; None where the task_source decides."""
    mapped: bool
    fan_out_key: str | None


class _Findings:
    """What the first pass learns."""

    def __init__(self, options: ExpansionOptions) -> None:
        self.options = options
        self.rows = self.numbered = self.baked = 0
        self.ordinals = CompactNumbers()
        self.given = CompactNumbers()
        self.repeated: set[int] = set()
        self.planned: Counter[tuple[str | None, str | None]] = Counter()
        self._without_agent: list[int] = []
        self._conflicts: list[int] = []
        self._first_place: Place | None = None
        self._without_repeats: dict[str, None] = {}
        self._rerouted: dict[tuple[str, str], None] = {}
        self._names_used: set[str | None] = set()

    def add(self, source: SourceRow) -> None:
        """Check one row and count what it becomes."""
        number, self.rows = self.rows, self.rows + 1
        self._number(source)
        if self.options.prompt is not None and has_own_input(source.value):
            self._conflicts.append(number)
            self._first_place = self._first_place or source.place
            return
        routed = _route(source, self.options)
        if routed.targets == (None,) and routed.task_source is None:
            self._without_agent.append(number)
            self._first_place = self._first_place or source.place
            return
        if self.options.add_seed:
            _check_seedable(routed.row["responses_create_params"], source.place)
        self.baked += routed.own_agent is not None and not routed.mapped and routed.task_source is None
        if routed.own_agent is not None and routed.agent is not None and routed.agent != routed.own_agent:
            self._rerouted[routed.own_agent, routed.agent] = None
        self._names_used.add(routed.fan_out_key)
        for target in routed.targets:
            repeats, name = _repeats(target, routed, self.options)
            if not repeats:
                self._without_repeats[str(target or routed.task_source)] = None
            self._names_used.add(name)
            self.planned[target, routed.task_source] += repeats

    def raise_collected(self) -> None:
        """Raise what concerns several rows."""
        if self._conflicts:
            raise prompt_conflict(self._conflicts, place=self._first_place)
        if self._without_agent:
            raise ExpansionError(
                f"{len(self._without_agent)} row(s) name no agent: {name_some(self._without_agent)} (counted from 0)",
                place=self._first_place,
                hint="give them an agent_ref or a task_source, or choose an agent for all rows with --agent",
            )
        if self._without_repeats and isinstance(self.options.num_repeats, Mapping):
            raise ExpansionError(
                f"num_repeats says nothing for {name_some(sorted(self._without_repeats))}",
                details=[f"it names: {', '.join(self.options.num_repeats)}"],
                hint=f"add them, or `{DEFAULT}` for whatever is not named",
            )

    def warnings(self) -> Iterator[str]:
        """Remarks for the user, at most one of each kind."""
        if self._rerouted:
            pairs = [f"{old} -> {new}" for old, new in self._rerouted]
            yield f"rows that name an agent are run by another: {name_some(pairs)}"
        if isinstance(self.options.num_repeats, Mapping):
            unused = [name for name in self.options.num_repeats if name != DEFAULT and name not in self._names_used]
            if unused:
                yield f"num_repeats names what no row is for: {name_some(unused)}"
        idle = [name for name in self.options.fan_out if name not in self._names_used]
        if idle:
            yield f"fan_out names what no row is for: {name_some(idle)}"

    def _number(self, source: SourceRow) -> None:
        given = source.value.get(TASK)
        if given is None:
            self.numbered += 1
            self._note(self.ordinals, _digest(source))
        elif isinstance(given, int) and not isinstance(given, bool):
            self._note(self.given, given)
        else:
            raise ExpansionError(f"{TASK} must be an integer, not {given!r}", place=source.place)

    def _note(self, numbers: CompactNumbers, key: int) -> None:
        if not numbers.add(key)[1]:
            self.repeated.add(key)


def _route(source: SourceRow, options: ExpansionOptions) -> _Routed:
    row = dict(source.value)
    if options.prompt is not None:
        from backend.datasets.prompt import apply_prompt_to_row

        row = apply_prompt_to_row(row, options.prompt, place=source.place)
    row["responses_create_params"] = {**_params(row, source.place), **options.params}
    own, task_source = _agent_of(row, source.place), _task_source_of(row, source.place)
    names = [name for name in (own, task_source, DEFAULT) if name is not None]
    mapped = next((options.agent_map[name] for name in names if name in options.agent_map), None)
    if mapped is not None:
        row[AGENT_REF] = {"name": mapped}
    if options.skills_ref is not None:
        row[SKILLS_REF] = dict(options.skills_ref)
    agent = mapped or own
    key = next((name for name in (own or task_source, agent) if name in options.fan_out), None)
    targets = options.fan_out[key] if key is not None else (agent,)
    return _Routed(row, own, agent, task_source, targets, mapped is not None, key)


def _repeats(target: str | None, routed: _Routed, options: ExpansionOptions) -> tuple[int, str | None]:
    """How often an agent runs a row, and the key of `num_repeats` that says so; 0 when none does."""
    if isinstance(options.num_repeats, int):
        return options.num_repeats, None
    for name in (target, routed.own_agent or routed.task_source, DEFAULT):
        if name is not None and name in options.num_repeats:
            return options.num_repeats[name], name
    return 0, None


def _copy(row: dict[str, Any], agent: str | None, task: int, rollout: int, options: ExpansionOptions) -> dict[str, Any]:
    copy = dict(row)
    copy["responses_create_params"] = params = dict(row["responses_create_params"])
    reference = row.get(AGENT_REF)
    if agent is not None and (reference is None or reference.get("name") != agent):
        copy[AGENT_REF] = {"name": agent}
    if options.add_seed:
        # Every copy gets a metadata object of its own: a shared one would leave all of them with the last seed.
        params["metadata"] = metadata = dict(params.get("metadata") or {})
        metadata["extra_body"] = json.dumps({**json.loads(metadata.get("extra_body") or "{}"), "seed": rollout})
    copy[TASK], copy[ROLLOUT] = task, rollout
    return copy


def _check_seedable(params: Mapping[str, Any], place: Place) -> None:
    metadata = params.get("metadata") or {}
    try:
        usable = isinstance(json.loads(metadata.get("extra_body") or "{}"), dict)
    except (AttributeError, TypeError, ValueError):
        usable = False
    if not usable:
        raise ExpansionError(
            "num_repeats_add_seed needs responses_create_params.metadata.extra_body to be the JSON text of an object",
            place=place,
            hint="mend or remove extra_body in this row",
        )


def _params(row: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    if "responses_create_params" not in row:
        near = closest("responses_create_params", row)
        raise RowFieldError(
            "the row has no responses_create_params",
            place=place,
            hint=f"rename `{near}`" if near else "give it an object with the `input` of the model call",
        )
    params = row["responses_create_params"]
    if not isinstance(params, Mapping):
        raise ExpansionError(f"responses_create_params must be an object, not {params!r:.60}", place=place)
    return params


def _agent_of(row: Mapping[str, Any], place: Place) -> str | None:
    reference = row.get(AGENT_REF)
    if reference is None:
        return None
    name = reference.get("name") if isinstance(reference, Mapping) else 0
    if name is not None and not isinstance(name, str):
        raise ExpansionError(f'agent_ref must be an object like {{"name": "my_agent"}}, not {reference!r:.60}', place=place)
    return name or None


def _task_source_of(row: Mapping[str, Any], place: Place) -> str | None:
    source = row.get(TASK_SOURCE)
    if source is not None and not isinstance(source, str):
        raise ExpansionError(f"task_source must be the name of a server instance, not {source!r:.60}", place=place)
    return source or None


def _free_numbers(count: int, given: CompactNumbers) -> Sequence[int]:
    """The first `count` task numbers from 0 on that no row brings along."""
    if not given:
        return range(count)
    if not count:
        return range(0)
    highest = count + len(given)
    return array("q", islice((number for number in range(highest) if number not in given), count))


def _digest(source: SourceRow) -> int:
    return int.from_bytes(blake2b(source.identity, digest_size=8).digest())
