"""The commands about evaluations; importable as `nemo_gym.cli.eval`."""

from __future__ import annotations

from backend.cli.library.commands import command_function

__all__ = ["collect_rollouts", "e2e_rollout_collection"]

e2e_rollout_collection = command_function("eval", "run")
collect_rollouts = command_function("eval", "run", "--no-serve")
