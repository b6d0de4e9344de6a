"""The supervisor's end of the line to the warm parent process."""

from __future__ import annotations

import _socket
import os

from backend.servers.spawned import spawn_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator
    from typing import Any

STACK_VARIABLE = "GYM_TUI_STACK"
"""Environment variable of servers, inherited by what they start; its value is their stack's alone."""
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_END_SECONDS = 2.0


class WarmParentLink:
    """Starts the warm parent and talks with it.

    Launch it before anything slow: it imports the web stack on another core meanwhile, and this module therefore next to nothing.
    The only write end of the death pipe lives here, so that this process' end, whatever its cause, ends all servers.
    """

    def __init__(self) -> None:
        ours, theirs = _socket.socketpair()
        death_read, self._death_write = os.pipe()
        self._mark = os.urandom(8).hex()
        self._inherited = dict(os.environ)
        environment = {
            **self._inherited,
            STACK_VARIABLE: self._mark,
            "PYTHONPATH": os.pathsep.join([_PACKAGES, os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        }
        descriptors = (theirs.fileno(), death_read)
        # -P: nothing in the working directory may be taken for a module of ours. A group of its own: Ctrl-C at the terminal is for the
        # command, which stops the servers in order.
        words = ["-P", "-m", "backend.servers.warm_parent", *map(str, descriptors), str(os.getpid())]
        try:
            self.process = spawn_python(words, environment, descriptors)
        except OSError:
            ours.close()
            os.close(self._death_write)
            raise
        finally:
            theirs.close()
            os.close(death_read)
        self._ours = ours
        self._connection: socket.socket | None = None
        self._closed = False
        self._has_children = False

    @property
    def _line(self) -> socket.socket:
        if self._connection is None:
            import socket

            self._connection = socket.socket(fileno=self._ours.detach())
        return self._connection

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """What the warm parent reports, until it is gone."""
        import asyncio

        from backend.servers.frames import FrameReader

        loop = asyncio.get_running_loop()
        self._line.setblocking(False)
        reader = FrameReader()
        while True:
            try:
                data = await loop.sock_recv(self._line, 1 << 16)
            except OSError:
                return
            if not data:
                return
            for message in reader.feed(data):
                yield message

    def send(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send one message; descriptors go with its first byte. Silently does nothing when the warm parent is gone."""
        import contextlib

        from backend.servers.frames import send_frame

        self._has_children = self._has_children or message["do"] == "spawn"
        with contextlib.suppress(OSError):
            self._line.setblocking(True)
            try:
                send_frame(self._line, message, descriptors)
            finally:
                self._line.setblocking(False)

    def changed_environment(self) -> dict[str, str]:
        """The environment variables of this process that were set since the launch, or set otherwise; servers are to have them too."""
        return {name: value for name, value in os.environ.items() if self._inherited.get(name) != value}

    def close(self) -> None:
        """End the warm parent and whatever servers are left; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        os.close(self._death_write)
        (self._connection or self._ours).close()
        if not self._has_children:  # it may still be importing, and nobody depends on it
            self.process.kill()
        if not self.process.wait(_END_SECONDS):
            self.process.kill()
            self.process.wait()
        if self._has_children and self.process.returncode:  # it was killed, and could not end what it had adopted
            from backend.servers.leftovers import kill_marked

            kill_marked(STACK_VARIABLE, self._mark)
