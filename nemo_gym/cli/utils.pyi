from backend.cli.library.utils import *
