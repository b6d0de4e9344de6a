"""Several tool calls that build on each other: look up a value for each synonym, then hand in all values in order."""

from __future__ import annotations

import json
from typing import ClassVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, ValidationError

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseFunctionToolCall
from resources_servers.example_multi_step.task_data import TaskData

HAND_IN_TOOL = "extract_synonym_values"


class ExampleMultiStepResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetSynonymValueRequest(BaseModel):
    """Arguments of `get_synonym_value`."""

    synonym: str


class GetSynonymValueResponse(BaseModel):
    """What `get_synonym_value` answers."""

    synonym_value: int


class ExtractSynonymValuesRequest(BaseModel):
    """Arguments of `extract_synonym_values`."""

    synonym_values: list[int]


class ExtractSynonymValuesResponse(BaseModel):
    """What `extract_synonym_values` answers."""

    success: bool


class ExampleMultiStepRunRequest(TaskData, BaseRunRequest):
    """The fields of a row."""


class ExampleMultiStepVerifyRequest(ExampleMultiStepRunRequest, BaseVerifyRequest):
    """A row with the response to judge."""


class ExampleMultiStepVerifyResponse(TaskData, BaseVerifyResponse):
    """The verdict."""

    model_config = ConfigDict(extra="ignore")

    parsed_synonym_values: list[int]
    """What the last hand-in held; empty when there was none that could be read."""
    accuracy: bool
    set_overlap: float
    """Share of the expected values that were handed in, order aside."""
    original_term_minefield_hit: bool
    """The value of the original term was handed in although it is none of the synonyms'."""
    order_instruction_following_failure: bool
    """All the right values, and still not the right list."""


class ExampleMultiStepResourcesServer(SimpleResourcesServer):
    """Offers the two tools, and compares the values handed in last with the expected ones."""

    config: ExampleMultiStepResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """The documented routes and the tools."""
        app = super().setup_webserver()
        app.post("/get_synonym_value")(self.get_synonym_value)
        app.post("/extract_synonym_values")(self.extract_synonym_values)
        return app

    async def get_synonym_value(self, body: GetSynonymValueRequest) -> GetSynonymValueResponse:
        """The value of a synonym: the sum of its characters' code points."""
        return GetSynonymValueResponse(synonym_value=synonym_value(body.synonym))

    async def extract_synonym_values(self, body: ExtractSynonymValuesRequest) -> ExtractSynonymValuesResponse:
        """Hand in the values of all synonyms, in the order of the task."""
        return ExtractSynonymValuesResponse(success=True)

    async def verify(self, body: ExampleMultiStepVerifyRequest) -> ExampleMultiStepVerifyResponse:
        """1.0 when the last hand-in is exactly the expected list; 0.0 with a reason when there is nothing to compare."""
        expected = body.expected_synonym_values
        values, reason = _handed_in(body.response)
        if not expected:
            reason = "the row expects no values"
        correct = not reason and values == expected
        overlap = len(set(values) & set(expected)) / len(expected) if expected else 0.0
        return ExampleMultiStepVerifyResponse(
            **body.model_dump(),
            reward=float(correct),
            failure_reason=reason,
            parsed_synonym_values=values,
            accuracy=correct,
            set_overlap=overlap,
            original_term_minefield_hit=body.minefield_label_value in set(values) - set(expected),
            order_instruction_following_failure=not correct and overlap == 1.0,
        )


def synonym_value(synonym: str) -> int:
    """The sum of the code points of a text."""
    return sum(map(ord, synonym))


def _handed_in(response: NeMoGymResponse) -> tuple[list[int], str | None]:
    """The values of the last hand-in, and why they cannot be read when they cannot."""
    calls = [item for item in response.output if isinstance(item, NeMoGymResponseFunctionToolCall) and item.name == HAND_IN_TOOL]
    if not calls:
        return [], None
    try:
        return ExtractSynonymValuesRequest.model_validate(json.loads(calls[-1].arguments)).synonym_values, None
    except ValidationError as error:
        return [], f"the last {HAND_IN_TOOL} has wrong arguments: {error.errors(include_url=False)[0]['msg']}"
    except (ValueError, RecursionError) as error:
        return [], f"the arguments of the last {HAND_IN_TOOL} are not JSON: {error}"


if __name__ == "__main__":
    ExampleMultiStepResourcesServer.run_webserver()
