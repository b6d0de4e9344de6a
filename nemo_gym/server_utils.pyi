from backend.servers.server_utils import *
