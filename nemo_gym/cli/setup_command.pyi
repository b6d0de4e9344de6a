from backend.cli.library.setup_command import *
