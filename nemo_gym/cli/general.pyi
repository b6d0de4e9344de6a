from backend.cli.library.general import *
