from backend.servers.sandbox.providers import *
