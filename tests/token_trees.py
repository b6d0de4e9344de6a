"""For tests of token capture: a model whose tokens follow from the words, an agent that forgets them, trees of recorded calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backend.servers.token_id_capture.records import TokenEntry
from tests.run_trees import SCRIPTED_VERIFIER, write_rows

TOKEN_MODEL = """
import asyncio
import os
from uuid import uuid4

from nemo_gym.base_responses_api_model import BaseResponsesAPIModelConfig, Body, SimpleResponsesAPIModel
from nemo_gym.openai_utils import (
    NeMoGymChatCompletion, NeMoGymChatCompletionCreateParamsNonStreaming, NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming,
)
from nemo_gym.server_utils import is_nemo_gym_fastapi_entrypoint


def text_of(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def tokens_of(messages):
    # Every turn begins with a token of its role, so that a prompt continues what was generated exactly where the words do.
    return [token for message in messages for token in [len(message["role"]), *text_of(message["content"]).encode()]]


class TokenModel(SimpleResponsesAPIModel):
    config: BaseResponsesAPIModelConfig

    async def answer(self, messages):
        said = "re:" + text_of(messages[-1]["content"])
        if said.startswith("re:slow") and not os.path.exists("hurry"):
            await asyncio.sleep(60)
        prompt, generation = tokens_of(messages), tokens_of([{"role": "assistant", "content": said}])
        tokens = {"prompt_token_ids": prompt, "generation_token_ids": generation, "generation_log_probs": [-0.5] * len(generation)}
        return said, {} if said.startswith("re:untold") else tokens

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        said, tokens = await self.answer([item.model_dump() for item in body.input])
        text = {"type": "output_text", "text": said, "annotations": []}
        item = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [text], **tokens}
        return NeMoGymResponse(
            id="resp_" + uuid4().hex, created_at=1.0, model="m", object="response", output=[item], parallel_tool_calls=True,
            tool_choice="auto", tools=[],
        )

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming = Body()) -> NeMoGymChatCompletion:
        said, tokens = await self.answer([dict(message) for message in body.model_dump()["messages"]])
        message = {"role": "assistant", "content": said, **tokens}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return NeMoGymChatCompletion.model_validate(
            {"id": "chat_" + uuid4().hex, "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )


if __name__ == "__main__":
    TokenModel.run_webserver()
elif is_nemo_gym_fastapi_entrypoint(__file__):
    app = TokenModel.run_webserver()
"""

FORGETFUL_AGENT = """
import json

from fastapi import Body
from pydantic import ConfigDict

from nemo_gym.base_resources_server import BaseRunRequest
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.server_utils import get_response_json, raise_for_status

TOKENS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


class ForgetfulConfig(BaseResponsesAPIAgentConfig):
    resources_server: ResourcesServerRef
    model_server: ModelServerRef


class RunRequest(BaseRunRequest):
    model_config = ConfigDict(extra="allow")


class ForgetfulAgent(SimpleResponsesAPIAgent):
    config: ForgetfulConfig

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        raise NotImplementedError

    async def ask(self, row, history):
        way = row.get("way", "responses")
        path, key = ("/v1/chat/completions", "messages") if way == "chat" else ("/v1/responses", "input")
        body = {key: history, **({"stream": True} if way == "stream" else {})}
        answer = await self.server_client.post(
            server_name=self.config.model_server.name, url_path=self.url_path_for_run(path, row), json=body
        )
        await raise_for_status(answer)
        if way == "stream":
            events = [line[6:] for line in (await answer.text()).splitlines() if line.startswith("data: ")]
            return json.loads(events[-1])["response"]
        value = await get_response_json(answer)
        if way != "chat":
            return value
        message = value["choices"][0]["message"]
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        item = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "model": "m", "created_at": 1.0}
        return {"id": "mine", "object": "response", "output": [item], **rest}

    async def run(self, body: RunRequest):
        row = body.model_dump(exclude_unset=True)
        for questions in row.get("conversations", [["a", "b"]]):
            history = []
            for question in questions:
                history.append({"role": "user", "content": question})
                response = await self.ask(row, history)
                said = "".join(part["text"] for item in response["output"] for part in item["content"])
                history.append({"role": "assistant", "content": said})
        if row.get("fails"):
            raise RuntimeError("the agent broke")
        if not row.get("keeps_tokens"):
            response["output"] = [{k: v for k, v in item.items() if k not in TOKENS} for item in response["output"]]
        if row.get("says"):
            response["id"] = "unknown"
            response["output"][0]["content"][0]["text"] = row["says"]
        answer = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/verify", json=row | {"response": response}
        )
        await raise_for_status(answer)
        return {**await get_response_json(answer), **row.get("adds", {})}


if __name__ == "__main__":
    ForgetfulAgent.run_webserver()
"""

CONFIG = """
verifier:
  resources_servers:
    scripted: {{entrypoint: app.py, domain: other, datasets: [{{name: rows, type: validation, license: MIT, jsonl_fpath: rows.jsonl}}]}}
agent:
  responses_api_agents:
    forgetful:
      entrypoint: app.py
      resources_server: {{type: resources_servers, name: verifier}}
      model_server: {{type: responses_api_models, name: policy_model}}
policy_model:
  responses_api_models:
    tokens: {{entrypoint: app.py, num_workers: {workers}}}
token_id_capture: {{enabled: true, all_agents: true, dir: {folder}}}
"""


def make_token_tree(folder: Path, rows: list[dict[str, Any]], workers: int = 1) -> Path:
    """`tokens.yaml`, its components, and the rows as `rows.jsonl`; gives the folder of the token records."""
    sources = {
        "responses_api_agents/forgetful": FORGETFUL_AGENT,
        "responses_api_models/tokens": TOKEN_MODEL,
        "resources_servers/scripted": SCRIPTED_VERIFIER,
    }
    for name, source in sources.items():
        component = folder / name
        component.mkdir(parents=True)
        (component / "app.py").write_text(source)
        (component / "requirements.txt").write_text("")
    records = folder / "token records"
    (folder / "tokens.yaml").write_text(CONFIG.format(workers=workers, folder=f'"{records}"'))
    write_rows(folder / "rows.jsonl", rows)
    return records


def tree_of_calls(steps: Sequence[tuple[int, list[int]]], call: Callable[..., TokenEntry]) -> list[TokenEntry]:
    """Calls `a`, `b`, …: each continues the earlier one that its step chooses (0: none), with a token of its own, and generates the tokens of its step."""
    entries: list[TokenEntry] = []
    for number, (choice, generation) in enumerate(steps):
        parent = entries[choice % len(entries)] if entries and choice else None
        before = [*parent.prompt_token_ids, *parent.generation_token_ids] if parent else []
        entries.append(call(chr(ord("a") + number), [*before, 100 + number], generation, parent and parent.model_call_id))
    return entries
