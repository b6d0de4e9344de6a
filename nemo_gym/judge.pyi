from backend.servers.judge import *
