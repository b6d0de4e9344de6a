"""A conversation of several turns: the user's further messages are in the row, the last answer is judged."""

from __future__ import annotations

from typing import Any

from nemo_gym.openai_utils import NeMoGymResponse
from resources_servers.example_multi_turn_gymnasium.task_data import TaskData
from resources_servers.gymnasium import GymnasiumServer, extract_text


class ExampleMultiTurnEnv(GymnasiumServer):
    """Answers each turn with the next follow-up; the turns so far are the session's state."""

    async def reset(self, metadata: dict[str, Any], session_id: str) -> tuple[str | None, dict[str, Any]]:
        """Begin with no turn taken; the row's own input is the first message."""
        TaskData.model_validate(metadata)
        self.session_state[session_id] = 0
        return None, {}

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """The next follow-up with reward 0.0; after the last one 1.0 when the answer contains the expected one, in any case."""
        task = TaskData.model_validate(metadata)
        turn = self.session_state.get(session_id, 0)
        if turn < len(task.follow_ups):
            self.session_state[session_id] = turn + 1
            return task.follow_ups[turn], 0.0, False, False, {}
        correct = task.expected_answer.casefold() in extract_text(action).casefold()
        return None, float(correct), True, False, {}


if __name__ == "__main__":
    ExampleMultiTurnEnv.run_webserver()
