from backend.servers.sandbox.api import *
