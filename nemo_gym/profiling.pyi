from backend.servers.profiling import *
