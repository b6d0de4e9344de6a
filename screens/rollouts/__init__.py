"""The Rollouts screen: follows a run through its event file, whoever started it."""
