"""Models that play the bundled examples: each reads a request body of `/v1/responses` and gives the next output items."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Items = list[dict[str, Any]]
Player = Callable[[dict[str, Any]], Items]

CITIES = {
    "Lisbon": "Lisbon", "Oslo": "Oslo", "Nairobi": "Nairobi", "São Paulo": "São Paulo", "Vienna": "Vienna", "Quito": "Quito",
    "Wien": "Vienna", "Osaka": "Osaka", "Cairo": "Cairo", "capital of Iceland": "Reykjavik", "Paris": "Paris", "Tokyo": "Tokyo",
    "Lima": "Lima", "Toronto": "Toronto",
}  # fmt: skip
CONVERSATIONS = {
    "Take the number 7 and double it.": "14",
    "Now subtract 4.": "10",
    "Which city is the capital of France?": "Paris",
    "And of Italy?": "Rome",
    "Name a colour of the flag of Japan.": "White",
    "Name the other one.": "Red",
    "Start with the word stone. Drop its first letter.": "tone",
    "Turn what you have around, letter by letter.": "enot",
    "Write that in capital letters.": "ENOT",
    "How many days does a week have?": "7",
    "How many hours are that?": "168",
}


def message(text: str) -> Items:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]


def call(request: dict[str, Any], name: str, **arguments: Any) -> Items:
    """A function call, with an id that says the how-manieth of the conversation it is."""
    text = json.dumps(arguments, ensure_ascii=False)
    number = len(tool_answers(request)) + 1
    return [{"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": text}]


def tool_answers(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What the tools have answered so far."""
    return [json.loads(item["output"]) for item in request["input"] if item.get("type") == "function_call_output"]


def last_words_of_the_user(request: dict[str, Any]) -> str:
    return str([item["content"] for item in request["input"] if item.get("role") == "user"][-1])


def weather_reporter(request: dict[str, Any]) -> Items:
    """Asks for the weather and repeats what it is told."""
    answers = tool_answers(request)
    if answers:
        return message(answers[-1].get("weather_description") or answers[-1]["weather"])
    question = last_words_of_the_user(request)
    city = next(name for words, name in CITIES.items() if words in question)
    return call(request, "get_weather", city=city)


def synonym_collector(request: dict[str, Any]) -> Items:
    """Looks up each synonym and hands in the values."""
    synonyms = last_words_of_the_user(request).partition("Synonyms: ")[2].split(", ")
    answers = tool_answers(request)
    values = [answer["synonym_value"] for answer in answers if "synonym_value" in answer]
    if len(values) < len(synonyms):
        return call(request, "get_synonym_value", synonym=synonyms[len(values)])
    if len(answers) == len(values):
        return call(request, "extract_synonym_values", synonym_values=values)
    return message("Done.")


def counter(request: dict[str, Any]) -> Items:
    """Changes the counter as asked, reads it and tells its value."""
    orders = re.findall(r"(add|subtract) (\d+)", last_words_of_the_user(request).lower())
    answers = tool_answers(request)
    if len(answers) < len(orders):
        verb, number = orders[len(answers)]
        return call(request, "increment_counter", count=int(number) if verb == "add" else -int(number))
    if len(answers) == len(orders):
        return call(request, "get_counter_value")
    return message(f"The counter says {answers[-1]['count']}.")


def partner(request: dict[str, Any]) -> Items:
    """Knows the answer to each turn."""
    return message(CONVERSATIONS[last_words_of_the_user(request)])


_BY_TOOL: dict[str, Player] = {
    "get_weather": weather_reporter,
    "get_synonym_value": synonym_collector,
    "increment_counter": counter,
}


def expert(request: dict[str, Any]) -> Items:
    """Plays whichever example it is asked to."""
    tools = request.get("tools") or []
    return _BY_TOOL[tools[0]["name"]](request) if tools else partner(request)


def chatterbox(_request: dict[str, Any]) -> Items:
    """Never calls a tool."""
    return message("What a lovely day.")


def cheat(request: dict[str, Any]) -> Items:
    """Calls the verifier as if it were a tool."""
    if tool_answers(request):
        return message("Did it work?")
    return call(request, "verify", responses_create_params={"input": []}, reward=1.0)
