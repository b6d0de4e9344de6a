from backend.responses.converter import *
