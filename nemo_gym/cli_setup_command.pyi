from backend.cli.library.cli_setup_command import *
