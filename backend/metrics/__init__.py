"""Pure functions on rewards and other numbers of finished rollouts: statistics, pass@k, majority@k, repeats, intervals."""
