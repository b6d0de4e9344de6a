from backend.servers.sandbox.config import *
