from backend.servers.model_server import *
