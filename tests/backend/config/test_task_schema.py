from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backend.config.errors import ConfigError
from backend.config.task_schema import task_schema

SCHEMA = """
from pydantic import BaseModel, Field
from resources_servers.quiz_for_schema.levels import Level


class Question(BaseModel):
    question: str = Field(json_schema_extra={"consumed_by": ["verify"]})
    level: Level = Level.EASY


TaskData = Question
"""
LEVELS = "from enum import Enum\n\n\nclass Level(str, Enum):\n    EASY = 'easy'\n"


@pytest.fixture
def quiz(write) -> Path:
    folder = "resources_servers/quiz_for_schema"
    return write({f"{folder}/task_data.py": SCHEMA, f"{folder}/levels.py": LEVELS, f"{folder}/app.py": ""})


def test_the_schema_with_what_authors_add(quiz: Path) -> None:
    before = list(sys.path)
    schema = task_schema("resources_servers/quiz_for_schema", [quiz])
    assert schema["required"] == ["question"]
    assert schema["properties"]["question"] == {"title": "Question", "type": "string", "consumed_by": ["verify"]}
    assert sys.path == before
    assert "resources_servers.quiz_for_schema.task_data" not in sys.modules


def test_unions(quiz: Path) -> None:
    path = quiz / "resources_servers/quiz_for_schema/task_data.py"
    path.write_text(SCHEMA.replace("TaskData = Question", "TaskData = Question | str"))
    assert len(task_schema("resources_servers/quiz_for_schema", [quiz])["anyOf"]) == 2


@pytest.mark.parametrize(
    ("entrypoint", "module", "part"),
    [
        ("resources_servers/quiz_for_schmea", "", "Did you mean `resources_servers/quiz_for_schema`"),
        ("quiz_for_schema", "", "names no component with task data"),
        ("resources_servers/quiz_for_schema", "import no_such_module_here", "ModuleNotFoundError"),
        ("resources_servers/quiz_for_schema", "x = 1", "TaskData"),
        ("resources_servers/quiz_for_schema", None, "has no schema of its task data"),
    ],
)
def test_what_is_wrong_is_named(quiz: Path, entrypoint: str, module: str | None, part: str) -> None:
    path = quiz / "resources_servers/quiz_for_schema/task_data.py"
    path.unlink() if module is None else path.write_text(module)
    with pytest.raises(ConfigError) as caught:
        task_schema(entrypoint, [quiz])
    assert part in str(caught.value)
