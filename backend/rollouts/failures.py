"""Failed attempts: how a failed call becomes a record, where records go, and which failures are worth another attempt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from backend.io.row_keys import ROLLOUT, TASK

FAILURE_PREFIX = "_ng_failure_"
FAILURE_CLASS = "_ng_failure_class"
TERMINAL = "_ng_failure_terminal"
NO_PERSIST = "_ng_no_persist"

AGENT_RUN_ERROR = "agent_run_error"
"""The agent ran and broke."""
AGENT_REQUEST_FAILED = "agent_request_failed"
"""Says nothing about the rollout: the call did not come through."""

_TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
_BODY_CHARACTERS = 2000
_REASON_CHARACTERS = 300
_LONGEST_REASON = 500


class Destination(Enum):
    """Which of a run's files a record belongs in."""

    ROLLOUTS = "rollouts"
    FAILURES = "failures"
    NOWHERE = "nowhere"


class Retry(Enum):
    """Whether a resumed run attempts a failed rollout again."""

    TO_THE_CAP = "to the cap"
    """Until the number of attempts allowed is used up."""
    NEVER = "never"
    ALWAYS = "always"
    """No record is left behind that could count."""


@dataclass(frozen=True, slots=True)
class FailureClass:
    """A class of failures with a meaning known to this program; agents may use any other name."""

    name: str
    meaning: str
    retry: Retry = Retry.TO_THE_CAP


KNOWN_CLASSES: Mapping[str, FailureClass] = {
    entry.name: entry
    for entry in (
        FailureClass(AGENT_RUN_ERROR, "the agent ran and broke"),
        FailureClass(AGENT_REQUEST_FAILED, "the call to the agent did not come through"),
        FailureClass("judge_failed", "the judge could not be asked; reverifying may recover the rollout"),
        FailureClass("kill_shaped", "the attempt was cut off and left nothing behind", Retry.ALWAYS),
        FailureClass("timeout_exceeded", "the agent ran out of the time it allows itself", Retry.NEVER),
        FailureClass("skipped", "the agent declined the task", Retry.NEVER),
        FailureClass("transient", "the agent met a passing fault"),
        FailureClass("legitimate", "the agent failed by its own doing"),
        FailureClass("incomplete", "the agent did not finish"),
        FailureClass("remote_agent_error", "a remote agent reported an error"),
        FailureClass("tau2_agent_error", "the simulated conversation broke"),
        FailureClass("tau2_malformed_tool_call", "a tool call could not be read"),
    )
}


@dataclass(frozen=True, slots=True)
class FailedCall:
    """What went wrong with one `POST /run`."""

    error_type: str
    message: str
    http_status: int | None
    """The agent's answer; None when there was no complete one."""
    body: bytes = b""
    """The beginning of the answer; a few thousand bytes suffice."""
    body_length: int = 0
    """Bytes of the whole answer."""
    upstream_status: int | None = None
    """What an endpoint behind the agent answered, where the agent passes that on."""


def class_of_status(http_status: int | None) -> str:
    """The failure class of a `/run` call that ended with this status, None standing for no complete answer."""
    return AGENT_REQUEST_FAILED if http_status is None or http_status in _TRANSIENT_STATUSES else AGENT_RUN_ERROR


def failure_record(call: FailedCall) -> dict[str, Any]:
    """The sidecar row of a failed call, without the row's own stamps."""
    return {
        FAILURE_CLASS: class_of_status(call.http_status),
        "_ng_failure_type": call.error_type,
        "_ng_failure_message": call.message,
        "_ng_failure_http_status": call.http_status,
        "_ng_failure_response_body": _body_text(call),
        "failure_reason": _reason(call),
    }


def destination_of(record: Mapping[str, Any]) -> Destination:
    """Where an answer goes: nowhere if it asks not to be kept, to the failures if it has a failure class, else to the rollouts."""
    if record.get(NO_PERSIST):
        return Destination.NOWHERE
    return Destination.ROLLOUTS if record.get(FAILURE_CLASS) is None else Destination.FAILURES


def retry_of(record: Mapping[str, Any]) -> Retry:
    """Whether the rollout behind a failed record is attempted again. What the record says of itself counts, not its class."""
    if record.get(NO_PERSIST):
        return Retry.ALWAYS
    return Retry.NEVER if record.get(TERMINAL) else Retry.TO_THE_CAP


def reason_of(record: Mapping[str, Any]) -> str:
    """Why an attempt failed, in the words of its record; empty when it does not say."""
    for key in ("failure_reason", "_ng_failure_judge_error", "error", "_ng_failure_message"):
        if record.get(key):
            return str(record[key])[:_LONGEST_REASON]
    return ""


def failures_as_zero(
    failures: Iterable[Mapping[str, Any]], classes: Collection[str], scored: Collection[tuple[int, int]]
) -> list[dict[str, Any]]:
    """The failed rollouts that go into the metrics, as records without failure keys and with a reward.

    `failures` are the rows of all sidecars in order. The last row of a (task, rollout) pair decides, whatever its class; it counts
    when its class is among `classes` and the pair is not among the `scored` ones. A reward that it has is kept, else it is 0.0.
    """
    last: dict[tuple[int, int], Mapping[str, Any] | None] = {}
    for row in failures:
        task, rollout = row.get(TASK), row.get(ROLLOUT)
        if isinstance(task, int) and isinstance(rollout, int):
            last[task, rollout] = row if row.get(FAILURE_CLASS) in classes else None
    return [_as_zero(row) for key, row in last.items() if row is not None and key not in scored]


def _as_zero(row: Mapping[str, Any]) -> dict[str, Any]:
    record = {key: value for key, value in row.items() if not key.startswith(FAILURE_PREFIX)}
    if record.get("reward") is None:
        record["reward"] = 0.0
    return record


def _body_text(call: FailedCall) -> str | None:
    if not call.body:
        return None
    text = call.body.decode("utf-8", "replace")[:_BODY_CHARACTERS]
    return text + "…" if max(call.body_length, len(call.body)) > _BODY_CHARACTERS else text


def _reason(call: FailedCall) -> str:
    # Imports the web stack: a third of a second that those who only read results do without.
    from backend.servers.middleware import innermost_error

    if call.http_status is None:
        return f"no complete answer from the agent: {call.error_type}: {call.message}"[:_REASON_CHARACTERS]
    if call.upstream_status is not None:
        status = f"HTTP {call.upstream_status} from a server behind the agent"
    else:
        status = f"the agent answered HTTP {call.http_status}"
    detail = innermost_error(call.body.decode("utf-8", "replace").strip()) or call.message
    return " ".join(f"{status}: {detail}".split())[:_REASON_CHARACTERS]
