from backend.servers.rollout_correlation import *
