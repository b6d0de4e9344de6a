from backend.metrics.reward_profile import *
