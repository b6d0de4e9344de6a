"""Where the console scripts begin."""

import sys

from backend.cli.interrupts import let_interrupts_kill

if sys.platform == "win32":
    sys.exit("Error: gym needs Linux or macOS; on Windows, run it in WSL (https://learn.microsoft.com/windows/wsl)")
let_interrupts_kill()

from backend.cli.launch import drop_unused, launch_ahead  # noqa: E402 - interrupts come first

__all__ = ["main"]


def main() -> int:
    """Run this process' command line; whatever is written to standard error, logs and tracebacks too, may hold foreign text."""
    launch_ahead(sys.argv[1:])

    from backend.cli import main as command_line
    from backend.cli.console import PrintableStream
    from backend.errors import ExitCode

    if sys.stderr is not None:
        sys.stderr = PrintableStream(sys.stderr)
    try:
        return command_line.main()
    except KeyboardInterrupt:  # a second one, while the first was told
        return ExitCode.INTERRUPTED
    finally:
        let_interrupts_kill()  # the interpreter's end is no place for exceptions
        drop_unused()
