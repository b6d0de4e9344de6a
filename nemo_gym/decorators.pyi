from backend.servers.decorators import *
