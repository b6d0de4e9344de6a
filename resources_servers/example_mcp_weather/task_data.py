"""What the rows of this environment hold beside `responses_create_params`."""

from pydantic import BaseModel, ConfigDict, Field


class VerifierMetadata(BaseModel):
    """What the verifier reads of a row."""

    model_config = ConfigDict(extra="allow")

    expected_city: str = "Paris"


class TaskData(BaseModel):
    """The city whose weather a row asks for."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: VerifierMetadata = Field(default_factory=VerifierMetadata)
