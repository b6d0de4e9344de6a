"""`python -m backend.cli`: the command line, started the way the console scripts are."""

import sys

from backend.cli.entry import main

sys.exit(main())
