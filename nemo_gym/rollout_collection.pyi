from backend.rollouts.rollout_collection import *
