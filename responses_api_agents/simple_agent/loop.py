"""The loop of agents that call tools: ask the model, run the tools it calls, give it their outputs, until it answers.

Whom to ask and how a tool is run is the business of `Parties`; the rules and the limits are here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from nemo_gym.openai_utils import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseUsage,
    accumulate_response_usage,
)
from responses_api_agents.simple_agent.tool_calls import ToolOutcome

DEFAULT_IDLE_TURNS = 8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a conversation ends although the model has not answered."""

    max_steps: int | None = None
    """Model calls; None: as many as it takes."""
    max_idle_turns: int = DEFAULT_IDLE_TURNS
    """Turns in a row with neither a message nor a call that reached a tool."""
    max_seconds: float | None = None
    """Seconds for the whole conversation; None: as long as it takes."""


class Parties(Protocol):
    """Whom an agent talks to: a model, and an environment with tools."""

    async def ask(self, request: dict[str, Any]) -> NeMoGymResponse:
        """The model's answer to a request body."""

    async def call_tool(self, call: NeMoGymResponseFunctionToolCall) -> ToolOutcome:
        """Run one tool call. Mistakes of the model are outcomes; what raises ends the rollout."""

    def calls_to_run(self, answer: NeMoGymResponse) -> list[NeMoGymResponseFunctionToolCall]:
        """The calls in an answer that are to be run, in order."""


class Observer(Protocol):
    """Who is told about each step, as it is done. Times are seconds since the epoch."""

    def turn(self, question: list[Any], answer: NeMoGymResponse, asked_at: float) -> None:
        """The model answered `answer` to the input items `question`."""

    def tool(self, call: NeMoGymResponseFunctionToolCall, outcome: ToolOutcome, started_at: float) -> None:
        """A tool call that began at `started_at` has just ended."""


@dataclass(slots=True)
class Conversation:
    """Requests that grow by every new item, and what has come of them."""

    request: dict[str, Any]
    """Body of the next model call; only fields that were set."""
    given: list[Any]
    """The input items it began with."""
    items: list[Any] = field(default_factory=list)
    """Everything new, in order: the model's items, tool outputs, observations."""
    usage: NeMoGymResponseUsage | None = None
    """Of all answers so far."""
    answer: NeMoGymResponse | None = None
    """The model's last one."""

    @classmethod
    def begin(cls, body: NeMoGymResponseCreateParamsNonStreaming) -> Self:
        """A conversation that starts with `body`; input that is text becomes a user's message."""
        if isinstance(body.input, str):
            message = NeMoGymEasyInputMessage(role="user", content=body.input, type="message")
            body = body.model_copy(update={"input": [message]})
        return cls(body.model_dump(exclude_unset=True), list(body.input))

    def add(self, items: Iterable[Any]) -> None:
        """Append items that the model will see next."""
        for item in items:
            self.items.append(item)
            self.request["input"].append(item.model_dump(exclude_unset=True))

    def take(self, answer: NeMoGymResponse) -> None:
        """Append what the model answered, and count its tokens."""
        self.answer = answer
        self.add(answer.output)
        self.usage = accumulate_response_usage(self.usage, answer.usage)

    def result(self, **changes: Any) -> NeMoGymResponse:
        """The last answer with all new items as its output and the usage of all calls. Raises RuntimeError before any answer."""
        if self.answer is None:
            raise RuntimeError("the model has not answered yet")
        return self.answer.model_copy(update={"output": self.items, "usage": self.usage, **changes})


async def converse(
    conversation: Conversation, parties: Parties, limits: Limits, observer: Observer | None = None
) -> NeMoGymResponse:
    """Run the loop and give its result.

    A conversation that time cut short has the status `incomplete`; TimeoutError is raised when time was up before the first answer.
    """
    time_limit = asyncio.timeout(limits.max_seconds)
    try:
        async with time_limit:
            await _turns(conversation, parties, limits, observer)
    except TimeoutError:
        if not time_limit.expired():
            raise
        if conversation.answer is None:
            raise TimeoutError(f"the model gave no answer within the rollout's {limits.max_seconds:g} s") from None
        _log.warning("a rollout was cut short after %g s (max_seconds)", limits.max_seconds)
        return conversation.result(status="incomplete")
    return conversation.result()


async def _turns(conversation: Conversation, parties: Parties, limits: Limits, observer: Observer | None) -> None:
    steps = idle_turns = 0
    while True:
        question, asked_at = [*conversation.given, *conversation.items], time.time()
        answer = await parties.ask(conversation.request)
        steps += 1
        conversation.take(answer)
        if observer:
            observer.turn(question, answer, asked_at)
        if answer.incomplete_details is not None:
            return
        calls = parties.calls_to_run(answer)
        if not calls and any(map(_is_message_of_the_model, answer.output)):
            return
        outputs, reached = [], False
        for call in calls:
            started_at = time.time()
            outcome = await parties.call_tool(call)
            if observer:
                observer.tool(call, outcome, started_at)
            outputs.append(NeMoGymFunctionCallOutput(type="function_call_output", call_id=call.call_id, output=outcome.output))
            reached = reached or outcome.reached
        conversation.add(outputs)
        idle_turns = 0 if reached else idle_turns + 1
        if idle_turns >= limits.max_idle_turns or (limits.max_steps and steps >= limits.max_steps):
            return


def function_calls(items: Iterable[Any]) -> list[NeMoGymResponseFunctionToolCall]:
    """The function calls among `items`, in order."""
    return [item for item in items if isinstance(item, NeMoGymResponseFunctionToolCall)]


def _is_message_of_the_model(item: Any) -> bool:
    if isinstance(item, NeMoGymResponseOutputMessage):
        return True
    return isinstance(item, NeMoGymEasyInputMessage) and item.role == "assistant"
