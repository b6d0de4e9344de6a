"""Ties what an agent reports of its model calls to the calls that were captured at the model server."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from backend.config.config_types import ModelServerRef
from backend.servers.observation_records import (
    AgentInvocation,
    AgentObservationBundle,
    AgentObservationRecord,
    ContextCompactionObservation,
    ModelCallRef,
    ObservationGap,
)

logger = logging.getLogger(__name__)


class CapturedCall(Protocol):
    """What a reference is compared with."""

    @property
    def model_call_id(self) -> str | None: ...
    @property
    def model_ref(self) -> ModelServerRef | None: ...
    @property
    def response_id(self) -> str | None: ...


class ReferenceResolver:
    """Finds the captured call that a reference names, and collects the gaps of references that name none or several."""

    def __init__(self, calls: Iterable[CapturedCall]) -> None:
        self._calls = list(calls)
        self._owners: dict[str, str] = {}
        self.gaps: list[ObservationGap] = []

    def resolve(self, reference: ModelCallRef, invocation_id: str, *, owns: bool = False) -> ModelCallRef:
        """The reference with all that is known of its call; itself where no single call fits.

        With `owns`, the invocation claims the call: a second one that does so is a gap.
        """
        fitting = [call for call in self._calls if _fits(reference, call)]
        name = reference.model_call_id or reference.response_id
        if len(fitting) != 1:
            if self._calls:
                code = "model_call_reference_ambiguous" if fitting else "model_call_reference_unmatched"
                self._add_gap(code, invocation_id, f"model_calls:{name}")
            return reference
        call = fitting[0]
        if owns and call.model_call_id is not None:
            owner = self._owners.setdefault(call.model_call_id, invocation_id)
            if owner != invocation_id:
                self._add_gap("model_call_reference_conflict", invocation_id, f"model_calls:{call.model_call_id}")
        return ModelCallRef(
            model_call_id=call.model_call_id,
            model_ref=call.model_ref or reference.model_ref,
            response_id=call.response_id or reference.response_id,
        )

    def resolve_all(self, references: Iterable[ModelCallRef], invocation_id: str, *, owns: bool = False) -> list[ModelCallRef]:
        """`resolve` for each; references to the same call become one."""
        resolved: list[ModelCallRef] = []
        for reference in references:
            known = self.resolve(reference, invocation_id, owns=owns)
            if known not in resolved:
                resolved.append(known)
        return resolved

    def _add_gap(self, code: str, invocation_id: str, detail: str) -> None:
        gap = ObservationGap(code=code, invocation_id=invocation_id, detail=detail)
        if gap not in self.gaps:
            self.gaps.append(gap)


def join_model_call_observations(bundle: AgentObservationBundle, calls: Sequence[CapturedCall]) -> AgentObservationBundle:
    """A copy of `bundle` whose references carry the ids of the captured `calls`.

    References that fit no call or several stay as they are and get a gap `model_call_reference_unmatched` or `…_ambiguous`; a call
    that two invocations claim gets `model_call_reference_conflict`. Where nothing was captured nothing is compared.
    """
    resolver = ReferenceResolver(calls)
    records: list[AgentObservationRecord] = [_joined(record, resolver) for record in bundle.records]
    gaps = [*bundle.gaps, *(gap for gap in resolver.gaps if gap not in bundle.gaps)]
    return bundle.model_copy(update={"records": records, "gaps": gaps})


def with_compaction_calls(bundle: AgentObservationBundle, calls: Sequence[CapturedCall]) -> AgentObservationBundle:
    """`bundle` with the calls that made an agent's summaries, where its own code can tell them from the others.

    That is the function `associate_<source>_compaction_calls` of `responses_api_agents.<source>_agent.observability`. An agent without
    one says nothing; one that fails leaves the gap `compaction_model_call_join_failed`.
    """
    if not (bundle.source.isidentifier() and any(isinstance(record, ContextCompactionObservation) for record in bundle.records)):
        return bundle
    try:
        module = importlib.import_module(f"responses_api_agents.{bundle.source}_agent.observability")
    except ImportError:
        return bundle
    associate = getattr(module, f"associate_{bundle.source}_compaction_calls", None)
    if associate is None:
        return bundle
    try:
        return AgentObservationBundle.model_validate(associate(bundle, list(calls)))
    except Exception as error:
        logger.warning("the calls that summed up the context of `%s` cannot be told: %r", bundle.source, error)
        gap = ObservationGap(code="compaction_model_call_join_failed")
        return bundle.model_copy(update={"gaps": [*bundle.gaps, gap]})


def _joined(record: AgentObservationRecord, resolver: ReferenceResolver) -> AgentObservationRecord:
    if isinstance(record, AgentInvocation):
        calls = resolver.resolve_all(record.model_calls, record.invocation_id, owns=True)
        return record.model_copy(update={"model_calls": calls})
    if isinstance(record, ContextCompactionObservation):
        return record.model_copy(
            update={
                "model_calls": resolver.resolve_all(record.model_calls, record.invocation_id),
                "before_model_call": _resolved(record.before_model_call, record, resolver),
                "after_model_call": _resolved(record.after_model_call, record, resolver),
            }
        )
    return record


def _resolved(
    reference: ModelCallRef | None, record: ContextCompactionObservation, resolver: ReferenceResolver
) -> ModelCallRef | None:
    return None if reference is None else resolver.resolve(reference, record.invocation_id)


def _fits(reference: ModelCallRef, call: CapturedCall) -> bool:
    """By the call's id, narrowed by what else the reference says; without an id, by model server and response."""
    if reference.model_call_id is not None:
        return (
            reference.model_call_id == call.model_call_id
            and reference.model_ref in (None, call.model_ref)
            and reference.response_id in (None, call.response_id)
        )
    return reference.model_ref == call.model_ref and reference.response_id == call.response_id
