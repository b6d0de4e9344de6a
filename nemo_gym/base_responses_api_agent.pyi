from backend.servers.agent_server import *
