"""A small tree of components for tests of runs: a scripted agent whose behaviour each row chooses, and a verifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCRIPTED_AGENT = """
import asyncio
import os

from fastapi import Body, HTTPException
from pydantic import ConfigDict

from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.config_types import ResourcesServerRef
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.server_utils import get_response_json, raise_for_status


class ScriptedConfig(BaseResponsesAPIAgentConfig):
    resources_server: ResourcesServerRef


class ScriptedRunRequest(BaseRunRequest):
    model_config = ConfigDict(extra="allow")


class ScriptedAgent(SimpleResponsesAPIAgent):
    config: ScriptedConfig

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        text = {"type": "output_text", "text": "an answer", "annotations": []}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        usage = {
            "input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }
        return NeMoGymResponse(
            id="resp_1", created_at=1.0, model="scripted", object="response", output=[message], parallel_tool_calls=True,
            tool_choice="auto", tools=[], usage=usage,
        )

    async def run(self, body: ScriptedRunRequest):
        row = body.model_dump(exclude_unset=True)
        await asyncio.sleep(row.get("seconds", 0))
        act = row.get("act", "answer")
        if act == "break":
            raise RuntimeError("the agent broke")
        if act == "busy":
            raise HTTPException(status_code=503, detail="busy")
        if act == "die":
            os._exit(9)
        if act == "list":
            return [1]
        if act == "judge":
            return row | {"reward": 0.0, "_ng_failure_class": "judge_failed", "_ng_failure_judge_error": "TimeoutError: slow"}
        if act == "kill":
            return row | {"_ng_no_persist": True}
        response = await self.responses(body.responses_create_params)
        answer = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/verify", json=row | {"response": response.model_dump()}
        )
        await raise_for_status(answer)
        return await get_response_json(answer)


if __name__ == "__main__":
    ScriptedAgent.run_webserver()
"""

SCRIPTED_VERIFIER = """
from pydantic import ConfigDict

from nemo_gym.base_resources_server import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer
from nemo_gym.reward_profile import compute_pass_majority_metrics, highest_k_metrics


class Request(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")
    expected_reward: float = 1.0


class Verifier(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: Request) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(include={"responses_create_params", "response"}), reward=body.expected_reward)

    def compute_metrics(self, tasks):
        return compute_pass_majority_metrics(tasks)[0]

    def get_key_metrics(self, agent_metrics):
        return {"mean/reward": agent_metrics["mean/reward"], **highest_k_metrics(agent_metrics, "pass@{k}")}


if __name__ == "__main__":
    Verifier.run_webserver()
"""

CONFIG = """
verifier:
  resources_servers:
    scripted: {entrypoint: app.py, domain: other, datasets: [{name: rows, type: validation, license: MIT, jsonl_fpath: rows.jsonl}]}
agent:
  responses_api_agents:
    scripted: {entrypoint: app.py, resources_server: {type: resources_servers, name: verifier}}
"""


def make_run_tree(folder: Path, rows: list[dict[str, Any]]) -> None:
    """`scripted.yaml`, its components, and the rows as `rows.jsonl`."""
    for kind, source in (("responses_api_agents", SCRIPTED_AGENT), ("resources_servers", SCRIPTED_VERIFIER)):
        component = folder / kind / "scripted"
        component.mkdir(parents=True)
        (component / "app.py").write_text(source)
        (component / "requirements.txt").write_text("")
    (folder / "scripted.yaml").write_text(CONFIG)
    write_rows(folder / "rows.jsonl", rows)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Input rows, each with minimal `responses_create_params`."""
    path.write_text(
        "".join(json.dumps({"responses_create_params": {"input": f"question {n}"}, **row}) + "\n" for n, row in enumerate(rows))
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
