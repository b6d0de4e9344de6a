"""Tool calls of a model as requests to a resources server: what may become one, and what the model is told when it may not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from nemo_gym.openai_utils import NeMoGymResponseFunctionToolCall
from nemo_gym.server_utils import ServerClient
from responses_api_agents.simple_agent.exchange import Cookies, cookie_values

RESERVED_NAMES = frozenset({"verify", "seed_session", "aggregate_metrics", "reverify_mode"})
"""Routes of every resources server that are not tools: through them a model could grade itself or begin anew."""

# Tool names become URL paths. These characters would make another path of them (URL parsers decode %, and drop line ends).
_LEAVES_THE_PATH = re.compile(r"[/\\?#%\x00-\x1f\x7f]|\.\.")
_NO_SUCH_TOOL = 404


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of one tool call."""

    output: str
    """The text that the model will see."""
    reached: bool = True
    """Whether there is such a tool and it was asked."""
    error_type: str | None = None
    """A short name of what went wrong; None when nothing did."""


class RefusedToolCall(Exception):
    """A call that must not become a request; `output` is the JSON text that the model gets as the tool's output."""

    def __init__(self, reason: str, error_type: str) -> None:
        super().__init__(reason)
        self.output = json.dumps({"error": reason})
        self.error_type = error_type


async def call_environment(
    client: ServerClient, server: str, call: NeMoGymResponseFunctionToolCall, cookies: Cookies
) -> ToolOutcome:
    """`POST /<name>` with the call's arguments; the answer's text counts whatever its status, for models can mend their calls.

    The server's cookies are added to `cookies`, not put in their place: an error sets none.
    """
    try:
        path, arguments = tool_path(call.name), tool_arguments(call.arguments)
    except RefusedToolCall as refusal:
        return ToolOutcome(refusal.output, reached=False, error_type=refusal.error_type)
    answer = await client.post(server_name=server, url_path=path, json=arguments, cookies=cookies)
    cookies.update(cookie_values(answer.cookies))
    text = (await answer.read()).decode("utf-8", "replace")
    failed = f"http_{answer.status}" if answer.status >= 400 else None
    return ToolOutcome(text, reached=answer.status != _NO_SUCH_TOOL, error_type=failed)


def tool_path(name: str) -> str:
    """The URL path of a tool on its resources server; raises `RefusedToolCall` for a name that cannot be a tool's."""
    plain = name.strip()
    if plain in RESERVED_NAMES or plain in ("", ".") or _LEAVES_THE_PATH.search(name):
        raise RefusedToolCall(f"There is no tool named {name!r}", "no_such_tool")
    return f"/{name}"


def tool_arguments(arguments: str) -> Any:
    """The parsed arguments of a call; raises `RefusedToolCall` for text that is not JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise RefusedToolCall(f"Invalid tool call arguments: {error!r}", "invalid_arguments") from None
