"""From the rows of a data set to scored rollouts: expansion, dispatch, result files, the run folder, the closing summary."""
