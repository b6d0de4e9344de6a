"""The rows of this environment have no fields of their own."""

from pydantic import BaseModel, ConfigDict


class TaskData(BaseModel):
    """Nothing beside `responses_create_params`."""

    model_config = ConfigDict(extra="allow")
