"""What the rows of this environment hold beside `responses_create_params`."""

from pydantic import BaseModel, ConfigDict


class TaskData(BaseModel):
    """The user's further messages, and what the last answer has to say."""

    model_config = ConfigDict(extra="allow")

    follow_ups: list[str] = []
    expected_answer: str
