from backend.responses.streaming import *
