"""What tests of handlers need: a place and a client for servers that are called in this process, and bodies to send."""

from __future__ import annotations

from backend.config.config_types import BaseServerConfig
from backend.servers.server_utils import ServerClient

PLACE = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "odd"}
CLIENT = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
RESPONSE = {
    "id": "r", "created_at": 1.0, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip
VERIFY = {"responses_create_params": {"input": "hi"}, "response": RESPONSE}
