from backend.servers.sandbox.providers.docker import *
