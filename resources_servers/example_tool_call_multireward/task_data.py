"""What the rows of this environment hold beside `responses_create_params`."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class ExpectedCall(BaseModel):
    """The call that is right."""

    name: str
    arguments: dict[str, Any]


class TaskData(BaseModel):
    """The one tool call that a row asks for."""

    model_config = ConfigDict(extra="allow")

    expected_call: ExpectedCall
