from backend.servers.sandbox import *
