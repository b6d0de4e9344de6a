"""What the rows of this environment hold beside `responses_create_params`."""

from pydantic import BaseModel, ConfigDict


class TaskData(BaseModel):
    """Where a counter starts, and where it has to be in the end."""

    model_config = ConfigDict(extra="allow")

    initial_count: int
    expected_count: int
