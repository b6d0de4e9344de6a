"""Multiple-choice questions: the reward is 1.0 when the answer chooses the expected letter, else 0.0. Stateless."""

from __future__ import annotations

from typing import Any, ClassVar

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.reward_profile import compute_pass_majority_metrics, highest_k_metrics
from resources_servers.mcqa.extraction import GradingMode, RowGradingMode, extract_answer


class MCQAResourcesServerConfig(BaseResourcesServerConfig):
    """Configuration of the server."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    grading_mode: GradingMode | None = None
    """Rules for all rows; null leaves the choice to each row."""


class MCQARunRequest(BaseRunRequest):
    """The fields of a row."""

    options: list[dict[str, str | None]] | None = None
    """Single-key mappings from a letter to an option's text; an option without a text cannot be chosen."""
    expected_answer: str
    grading_mode: RowGradingMode = "strict_single_letter_boxed"
    template_metadata: dict[str, Any] | None = None
    """`output_regex` (a pattern or a list of patterns) and `answer_prefix`; other keys are not read."""
    uuid: str | int | None = None
    metadata: dict[str, Any] | None = None


class MCQAVerifyRequest(MCQARunRequest, BaseVerifyRequest):
    """A row with the response to grade."""


class MCQAVerifyResponse(BaseVerifyResponse):
    """The verdict."""

    expected_answer: str
    """Upper case, without surrounding white space."""
    extracted_answer: str | None
    """The letter that the response chose; null when it chose none."""


class MCQAResourcesServer(SimpleResourcesServer):
    """Grades the text of all messages of a response."""

    config: MCQAResourcesServerConfig

    async def verify(self, body: MCQAVerifyRequest) -> MCQAVerifyResponse:
        """Grade one response."""
        gold = body.expected_answer.strip().upper()
        extracted = extract_answer(
            body.response.output_text, body.options, self.config.grading_mode or body.grading_mode, body.template_metadata
        )
        return MCQAVerifyResponse(
            responses_create_params=body.responses_create_params,
            response=body.response,
            reward=1.0 if extracted == gold else 0.0,
            expected_answer=gold,
            extracted_answer=extracted,
        )

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """pass@k, averages over the first k, and majority@k over the extracted letters, in percent."""
        metrics, *_ = compute_pass_majority_metrics(tasks, _accuracy, answer_key="extracted_answer")
        return metrics

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """The mean reward, and of the others those at the highest k."""
        single: dict[str, Any] = {key: agent_metrics[key] for key in ("mean/reward", "pass@1/accuracy") if key in agent_metrics}
        return {
            **single,
            **highest_k_metrics(agent_metrics, "pass@1[avg-of-{k}]", score_names=["accuracy", "no_answer"]),
            **highest_k_metrics(agent_metrics, "pass@{k}", score_names=["no_answer"]),
            **highest_k_metrics(agent_metrics, "majority@{k}", score_names=["accuracy"]),
        }


def _accuracy(rollout: dict[str, Any]) -> dict[str, float]:
    return {"accuracy": rollout["reward"]}


if __name__ == "__main__":
    MCQAResourcesServer.run_webserver()
