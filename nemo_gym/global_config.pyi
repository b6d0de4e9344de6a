from backend.config.global_config import *
