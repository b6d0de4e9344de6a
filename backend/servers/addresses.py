"""How a host and a port become a URL, and what a URL says about who is asking."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import unquote, urlsplit, urlunsplit

from backend.io.redact import basic_credentials


def server_url(host: str, port: int) -> str:
    """`http://host:port`; an IPv6 address gets its brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@lru_cache(maxsize=256)
def split_credentials(url: str) -> tuple[str, str | None]:
    """`url` without its `user:password@`, and these as the value of an `Authorization` header (RFC 7617, UTF-8); None without any."""
    parts = urlsplit(url)
    credentials, _, place = parts.netloc.rpartition("@")
    user, _, password = map(unquote, credentials.partition(":"))
    authorization = f"Basic {basic_credentials(user, password)}" if user or password else None
    return urlunsplit(parts._replace(netloc=place)) if place != parts.netloc else url, authorization
