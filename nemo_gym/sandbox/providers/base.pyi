from backend.servers.sandbox.providers.base import *
