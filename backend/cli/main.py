"""Entry point of `gym` and `ng`: parse, run one command, leave with its exit code."""

from __future__ import annotations

import errno
import glob
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from backend.cli.console import print_error
from backend.cli.interrupts import let_interrupts_raise
from backend.cli.parser import HelpShown, Parsed, ParserError, VersionAsked, parse
from backend.errors import ExitCode, GymError

_EXHAUSTED = {
    errno.EMFILE: "raise the limit of open files (`ulimit -n`) and try again",
    errno.ENFILE: "the whole machine has too many files open",
    errno.EAGAIN: "there are too many processes (`ulimit -u`, or the container's limit), or what reads the output takes no more at present",
    errno.ENOMEM: "there is not enough memory free to start another process",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (by default this process' own) and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parsed = parse(words, program=Path(sys.argv[0]).name or "gym")
    except HelpShown as shown:
        return shown.code
    except ParserError as error:
        print(f"{error.usage}{error.program}: error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    try:
        return _run(parsed)
    except GymError as error:
        print_error(error, as_json=parsed.json)
        return error.exit_code
    except OSError as error:
        if error.errno not in _EXHAUSTED:
            raise
        print_error(
            GymError(f"the system gives this process no more: {error.strerror}", hint=_EXHAUSTED[error.errno]),
            as_json=parsed.json,
        )
        return ExitCode.BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr, flush=True)
        return ExitCode.INTERRUPTED


def _run(parsed: Parsed | VersionAsked) -> int:
    if isinstance(parsed, VersionAsked):
        from backend.cli.version import print_versions

        print_versions(as_json=parsed.json)
        return ExitCode.OK
    _refuse_a_second_namespace()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise GymError("the working directory does not exist any more", hint="go to one that does") from None
    if parsed.verbose:
        import logging

        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    command = import_module(parsed.command.module)
    let_interrupts_raise()  # not before: what is imported has extension modules
    code: int = command.run(parsed)
    return code


def _refuse_a_second_namespace() -> None:
    """NeMo Gym's own distribution installs the package `nemo_gym` as well; which of the two would be imported is chance."""
    for folder in sys.path:
        if folder.endswith("site-packages") and (found := glob.glob(f"{glob.escape(folder)}/nemo_gym-*.dist-info")):
            raise GymError(
                f"the distribution nemo-gym is installed in this environment too ({found[0]}), and both provide `nemo_gym`",
                hint="remove it with: pip uninstall nemo-gym; or install gym-tui into an environment of its own",
            )


if __name__ == "__main__":
    sys.exit(main())
