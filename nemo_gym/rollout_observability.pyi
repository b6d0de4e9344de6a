from backend.servers.rollout_observability import *
