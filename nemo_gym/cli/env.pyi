from backend.cli.library.env import *
