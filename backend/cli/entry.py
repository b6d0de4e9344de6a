"""Where the console scripts begin.

Python answers Ctrl-C with a traceback for as long as modules are being imported; until the command can say it better, the signal
simply ends the process.
"""

import signal
import sys

if sys.platform == "win32":
    sys.exit("Error: gym needs Linux or macOS; on Windows, run it in WSL (https://learn.microsoft.com/windows/wsl)")
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from backend.cli.main import main

__all__ = ["main"]
