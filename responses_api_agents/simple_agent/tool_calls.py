"""What may become a request to a resources server when a model calls a tool, and what the model is told when it may not."""

from __future__ import annotations

import json
import re
from typing import Any

RESERVED_NAMES = frozenset({"verify", "seed_session", "aggregate_metrics", "reverify_mode"})
"""Routes of every resources server that are not tools: through them a model could grade itself or begin anew."""

# Tool names become URL paths. These characters would make another path of them (URL parsers decode %, and drop line ends).
_LEAVES_THE_PATH = re.compile(r"[/\\?#%\x00-\x1f\x7f]|\.\.")


class RefusedToolCall(Exception):
    """A call that must not become a request; `output` is the JSON text that the model gets as the tool's output."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.output = json.dumps({"error": reason})


def tool_path(name: str) -> str:
    """The URL path of a tool on its resources server; raises `RefusedToolCall` for a name that cannot be a tool's."""
    plain = name.strip()
    if plain in RESERVED_NAMES or plain in ("", ".") or _LEAVES_THE_PATH.search(name):
        raise RefusedToolCall(f"There is no tool named {name!r}")
    return f"/{name}"


def tool_arguments(arguments: str) -> Any:
    """The parsed arguments of a call; raises `RefusedToolCall` for text that is not JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise RefusedToolCall(f"Invalid tool call arguments: {error!r}") from None
