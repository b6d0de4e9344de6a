from backend.servers.openai_utils import *
