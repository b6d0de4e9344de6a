"""TLS contexts that read the system's certificates when they are first used.

aiohttp makes two contexts when it is imported, and reads 140 certificates for each: 0.07 s of every start, though most servers only ever talk
to their neighbours over plain HTTP.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from typing import Any


class _LateTrust(ssl.SSLContext):
    """A context whose default certificates are still to be read."""

    def _read(self) -> None:
        if self.__dict__.pop("late", False):
            super().set_default_verify_paths()

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        self._read()
        return super().wrap_socket(*arguments, **options)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self._read()
        return super().wrap_bio(*arguments, **options)

    def cert_store_stats(self) -> dict[str, int]:
        self._read()
        return super().cert_store_stats()

    def get_ca_certs(self, *arguments: Any, **options: Any) -> Any:
        self._read()
        return super().get_ca_certs(*arguments, **options)


@contextlib.contextmanager
def certificates_read_when_used() -> Iterator[None]:
    """Contexts that are made inside the block read the system's certificates with their first connection, or when they are asked about them."""
    made: list[ssl.SSLContext] = []
    # The class inherits the method from C; what stands in for it hides it for the time of the block.
    ssl.SSLContext.set_default_verify_paths = lambda context: made.append(context)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths
    for context in made:
        context.__class__ = _LateTrust
        context.__dict__["late"] = True
