from backend.config.config_types import *
