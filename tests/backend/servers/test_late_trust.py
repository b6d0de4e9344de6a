"""TLS contexts that read the system's certificates late must trust what others trust, and nothing else."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme

from backend.servers.late_trust import certificates_read_when_used
from tests.conftest import ROOT

CALL = """
import asyncio, ssl, sys
from backend.servers.late_trust import certificates_read_when_used

with certificates_read_when_used():
    import aiohttp

async def call():
    connector = aiohttp.TCPConnector()
    async with aiohttp.ClientSession(connector=connector) as session:
        async with session.get(sys.argv[1]) as answer:
            print(answer.status)

try:
    asyncio.run(call())
except aiohttp.ClientConnectorCertificateError:
    print("not trusted")
"""


class _Greeting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def address(authority: trustme.CA) -> Iterator[str]:
    """An HTTPS server on loopback whose certificate `authority` has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = HTTPServer(("127.0.0.1", 0), _Greeting)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://localhost:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("trusted", [True, False])
def test_first_connection_reads_what_is_trusted(authority: trustme.CA, address: str, tmp_path: Path, trusted: bool) -> None:
    bundle = tmp_path / "ca.pem"
    (authority if trusted else trustme.CA()).cert_pem.write_to_path(str(bundle))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SSL_CERT_FILE": str(bundle)}
    result = subprocess.run([sys.executable, "-c", CALL, address], env=environment, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("200\n" if trusted else "not trusted\n", "")


def test_nothing_is_read_before_it_is_needed(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with certificates_read_when_used():
        late = [ssl.create_default_context() for _ in range(2)]
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert [certificate["subject"] for certificate in late[0].get_ca_certs()] == [
        certificate["subject"] for certificate in ssl.create_default_context().get_ca_certs()
    ]
    assert late[1].cert_store_stats() == {"x509": 1, "crl": 0, "x509_ca": 1}


def test_others_read_at_once(monkeypatch: pytest.MonkeyPatch, authority: trustme.CA, tmp_path: Path) -> None:
    with certificates_read_when_used():
        pass
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    context = ssl.create_default_context()
    monkeypatch.undo()
    assert type(context) is ssl.SSLContext and context.cert_store_stats()["x509_ca"] == 1
