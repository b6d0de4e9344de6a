"""Builds the rows of `first_steps` from `data/questions.tsv`. Deterministic: the same table gives the same bytes.

Every row carries its whole conversation: four worked examples as earlier turns, then the question. Small models keep to a form that
they have seen themselves use; told about it in one long message, they fall back into chat.
"""

from __future__ import annotations

import csv
import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "data"
QUESTIONS = FOLDER / "questions.tsv"
OUTPUT = FOLDER / "first_steps_benchmark.jsonl"

LETTERS = "ABCD"
MAX_OUTPUT_TOKENS = 24
SYSTEM_MESSAGE = 'Answer in one line: "Answer: " and then one or two words, or a number in digits.'
WORKED_EXAMPLES = (
    ("What is the capital of Spain?", "Madrid"),
    ("What is 3 plus 4?", "7"),
    ("What is the opposite of big?", "Small"),
    ("Which animal gives us wool?", "Sheep"),
)


def prepare() -> Path:
    """Write the benchmark's rows and return the file. A file that already holds them is not touched, so it may be read-only."""
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in build_rows(read_questions())).encode()
    if not OUTPUT.exists() or OUTPUT.read_bytes() != content:
        OUTPUT.write_bytes(content)
    return OUTPUT


def read_questions(path: Path = QUESTIONS) -> list[dict[str, str]]:
    """The table's lines by column name: subject, difficulty, question, answer, wrong_1 to wrong_3, expression, source."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def build_rows(questions: list[dict[str, str]]) -> list[dict[str, Any]]:
    """One row per question, in the table's order; each letter is right equally often, in an order that looks random."""
    shuffled = sorted(questions, key=lambda question: hashlib.sha256(question["question"].encode()).digest())
    letters = {question["question"]: LETTERS[place % len(LETTERS)] for place, question in enumerate(shuffled)}
    return [_row(question, letters[question["question"]]) for question in questions]


def _row(question: dict[str, str], letter: str) -> dict[str, Any]:
    texts = [question["wrong_1"], question["wrong_2"], question["wrong_3"]]
    texts.insert(LETTERS.index(letter), question["answer"])
    return {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"first_steps/{question['question']}")),
        "subject": question["subject"],
        "difficulty": question["difficulty"],
        "question": question["question"],
        "options": [{key: text} for key, text in zip(LETTERS, texts, strict=True)],
        "expected_answer": letter,
        "expression": question["expression"] or None,
        "source": question["source"],
        "responses_create_params": {
            "input": _conversation(question["question"]),
            "temperature": 0.0,
            "max_output_tokens": MAX_OUTPUT_TOKENS,
        },
    }


def _conversation(question: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": SYSTEM_MESSAGE}]
    for example, answer in WORKED_EXAMPLES:
        messages.append({"role": "user", "content": example})
        messages.append({"role": "assistant", "content": f"Answer: {answer}"})
    return [*messages, {"role": "user", "content": question}]


if __name__ == "__main__":
    print(prepare())
