from backend.cli.library import *
