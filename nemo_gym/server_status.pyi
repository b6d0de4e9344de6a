from backend.servers.server_status import *
