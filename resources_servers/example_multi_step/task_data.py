"""What the rows of this environment hold beside `responses_create_params`."""

from pydantic import BaseModel, ConfigDict


class TaskData(BaseModel):
    """A list of synonyms to look up, and what the tools give for them."""

    model_config = ConfigDict(extra="allow")

    id: int
    expected_synonyms: list[str]
    """In the order of the task."""
    expected_synonym_values: list[int]
    """The tool's value of each, in the same order."""
    minefield_label: str
    """The term that the synonyms are of; looking that up is a mistake."""
    minefield_label_value: int
