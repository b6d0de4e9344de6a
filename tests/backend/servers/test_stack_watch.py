"""Samples of servers that answer, hang, babble or are gone."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from backend.servers.inflight import InflightWork
from backend.servers.stack_record import StackRecord, StackServer
from backend.servers.stack_watch import PROBE_SECONDS, ServerSample, sample_stacks
from tests.conftest import unused_port
from tests.loopback import serving_in_thread


def stack(*urls: str, pid: int = 0, state: str = "ready") -> StackRecord:
    servers = tuple(
        StackServer(f"s{number}", "resources_servers", "mcqa", url, pid=pid, state=state) for number, url in enumerate(urls)
    )
    return StackRecord("id", 1, 1.0, 1.0, (), "", "", "ready", "", servers)


def sample(*urls: str, **fields: Any) -> tuple[ServerSample, ...]:
    return sample_stacks([stack(*urls, **fields)])[0].servers


@contextmanager
def saying(data: bytes) -> Iterator[str]:
    """A listener that answers every connection with `data` and then says nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                kept.append(connection)
                connection.sendall(data)

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for connection in kept:
            connection.close()


async def application(scope: Any, receive: Any, send: Any) -> None:
    status = 503 if scope["path"] == "/broken" else 404
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def test_any_http_answer_is_success() -> None:
    with serving_in_thread(application) as url:
        (answered,) = sample(url)
    assert (answered.health, answered.http_status, answered.in_flight) == ("success", 404, None)
    assert answered.latency_ms is not None and 0 < answered.latency_ms < 1000


def test_requests_and_errors_are_told() -> None:
    import httpx

    with serving_in_thread(InflightWork(application, "quiz")) as url:
        for path in ("/", "/verify", "/broken", "/broken"):
            httpx.get(url + path)
        (answered,) = sample(url)
    assert (answered.in_flight, answered.requests, answered.errors) == (0, 3, 2)


def test_hanging_servers_cost_one_timeout_together() -> None:
    began = time.monotonic()
    with (
        saying(b"") as silent,
        saying(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx") as unfinished,
        saying(b"hello\n") as other,
    ):
        answers = sample(silent, unfinished, other, f"http://127.0.0.1:{unused_port()}", silent)
    assert time.monotonic() - began < 2 * PROBE_SECONDS
    assert [answer.health for answer in answers] == ["timeout", "timeout", "unknown_error", "connection_error", "timeout"]
    assert answers[0].error == "no answer within 2 s"
    assert answers[3].error == "Connection refused"


def test_a_server_that_drips_its_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while not done.wait(0.2):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        (answer,) = sample(f"http://127.0.0.1:{listener.getsockname()[1]}")
        done.set()
        thread.join()
    assert answer.health == "timeout"
    assert time.monotonic() - began < 10 * PROBE_SECONDS, "the whole answer would take 200 s"


@pytest.mark.parametrize(("state", "reason"), [("starting", "it is not ready yet"), ("ended", "it has ended")])
def test_only_ready_servers_are_asked(state: str, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (answer,) = sample(f"http://127.0.0.1:{listener.getsockname()[1]}", state=state)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has come
            listener.accept()
    assert (answer.health, answer.error) == ("connection_error", reason)


def test_no_address_is_no_crash() -> None:
    assert sample("")[0].health == "unknown_error"


BUSY = "import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', 'while True: pass'])\nprint(child.pid, flush=True)\ntime.sleep(60)"


def test_cpu_and_memory_of_a_process_and_its_tools() -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        tool = psutil.Process(int(process.stdout.readline()))
        try:
            record = stack(url, pid=process.pid)
            first = sample_stacks([record])
            time.sleep(1)
            (second,) = sample_stacks([record], first)[0].servers
            tools_memory = tool.memory_info().rss
        finally:
            tool.kill()
            process.kill()
    assert second.alive
    assert second.cpu_percent is not None and 0 < second.cpu_percent < 130  # on a busy machine the rest of it is the others'
    assert second.memory is not None and second.memory > tools_memory + 1_000_000


def test_a_process_that_is_gone_has_no_figures() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        url = f"http://127.0.0.1:{unused_port()}"
        (gone,) = sample(url, pid=process.pid)
    assert (gone.alive, gone.cpu_percent, gone.memory) == (False, None, None)


def test_nothing_to_sample() -> None:
    assert sample_stacks([]) == ()
