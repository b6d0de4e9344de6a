from backend.servers.resources_server import *
