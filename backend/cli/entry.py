"""Where the console scripts begin."""

import sys

from backend.cli.interrupts import let_interrupts_kill

if sys.platform == "win32":
    sys.exit("Error: gym needs Linux or macOS; on Windows, run it in WSL (https://learn.microsoft.com/windows/wsl)")
let_interrupts_kill()

from backend.cli.main import main  # noqa: E402 - only now: it imports much

__all__ = ["main"]
