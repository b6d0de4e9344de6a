"""What servers print: read from their pipes line by line, masked, kept for explanations, and passed on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from backend.io.redact import Redactor

logger = logging.getLogger(__name__)

OutputSink = Callable[[str, str], None]
"""Gets the name of a server and a line."""
_LONGEST_LINE = 1 << 20


async def pump_lines(descriptor: int, redactor: Redactor, take: Callable[[str], None]) -> None:
    """Give `take` every line that comes out of a pipe, without its end and with secrets masked, until the pipe closes."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while data := await _read_line(reader):
            take(redactor.text(data.decode("utf-8", "replace").rstrip("\r\n")))
    finally:
        transport.close()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await reader.readexactly(error.consumed)


def log_name(server: str) -> str:
    """File name of a server's log."""
    return f"{server.replace('/', '_')}.log"


class OutputSinks:
    """Where a server's lines go. One that fails is dropped: a full disk must not stop the server, whose pipe has to be read."""

    def __init__(self, server: str, log_folder: Path | None, append: bool, on_output: OutputSink | None) -> None:
        self._server = server
        self._on_output = on_output
        self._log: BinaryIO | None = None
        if log_folder is not None:
            with self._dropping_the_log():
                log_folder.mkdir(parents=True, exist_ok=True)
                mode = "ab" if append else "wb"
                self._log = cast(BinaryIO, open(log_folder / log_name(server), mode, buffering=0))  # noqa: SIM115

    def take(self, line: str) -> None:
        if self._log is not None:
            with self._dropping_the_log():
                self._log.write(line.encode() + b"\n")
        if self._on_output is not None:
            try:
                self._on_output(self._server, line)
            except (OSError, ValueError):  # nobody reads the terminal any more
                self._on_output = None

    def close(self) -> None:
        """Close the log; closing twice is fine."""
        if self._log is not None:
            self._log.close()
        self._log = None

    @contextlib.contextmanager
    def _dropping_the_log(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._log = None
            logger.warning("the log of server `%s` cannot be written any more: %s", self._server, error)
