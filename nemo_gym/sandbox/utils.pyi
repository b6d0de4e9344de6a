from backend.servers.sandbox.utils import *
