from backend.servers.mcp_auto_exposure import *
