"""The viewer: reads any rollout of a file of any size."""
