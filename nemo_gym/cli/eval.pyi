from backend.cli.library.eval import *
