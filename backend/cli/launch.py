"""The warm parent of a command that will need one, begun before its command line is read: reading that takes a tenth of a second.

Whether the words will need one is guessed from the first two; a wrong guess costs nothing but an early or a late start.
"""

from __future__ import annotations

from backend.servers.warm_parent_link import WarmParentLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = (["env", "start"], ["eval", "run"])
_WITHOUT_SERVERS = frozenset({"-h", "--help", "--no-serve"})
_ahead: list[WarmParentLink] = []


def launch_ahead(words: Sequence[str]) -> None:
    """Begin the warm parent when a command with these words starts servers."""
    if list(words[:2]) in _COMMANDS and _WITHOUT_SERVERS.isdisjoint(words):
        try:
            _ahead.append(WarmParentLink())
        except OSError:  # if it is for good, the command tells it
            return
        from backend.servers.read_ahead import read_ahead  # and not before: it is for the process that imports already

        read_ahead()


def warm_parent_link() -> WarmParentLink:
    """The link to the warm parent that was begun ahead, else to a new one; the caller closes it."""
    return _ahead.pop() if _ahead else WarmParentLink()


def drop_unused() -> None:
    """End a warm parent that was begun ahead and that no command has taken."""
    while _ahead:
        _ahead.pop().close()
