import asyncio
import logging
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import pytest

from backend.servers.http_client import close_http_session
from backend.servers.openai_utils import (
    RATE_LIMIT_ERROR_CODES,
    RETRY_ERROR_CODES,
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymResponse,
)
from tests.loopback import Reply, chat_answer, endpoint, responses_answer

KEY = "sk-0123456789abcdef"
OK = Reply(body=chat_answer())


@pytest.fixture(autouse=True)
async def _closed_session():
    yield
    await close_http_session()


def client_of(upstream, **settings):
    return NeMoGymAsyncOpenAI(base_url=upstream.base_url, api_key=KEY, **settings)


def test_codes_are_the_documented_ones():
    assert RATE_LIMIT_ERROR_CODES == [429, 502, 503, 504, 520]
    assert sorted(RETRY_ERROR_CODES) == [429, 500, 502, 503, 504, 520]


async def test_each_method_posts_its_arguments_to_its_route():
    async with endpoint(lambda request: Reply(body={"choices": [1], "output": [1], "path": request.path})) as upstream:
        client = client_of(upstream, default_headers={"x-extra": "1"})
        assert (await client.create_chat_completion(a=1))["path"] == "/v1/chat/completions"
        assert (await client.create_completion(a=1))["path"] == "/v1/completions"
        assert (await client.create_response(a=1))["path"] == "/v1/responses"
        assert (await client.create_tokenize(a=1))["path"] == "/tokenize"
        assert (await client.create_models())["path"] == "/v1/models"
    first = upstream.requests[0]
    assert first.body == {"a": 1}
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.headers["x-extra"] == "1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_cannot_pass_is_not_retried_and_keeps_status_and_body(status):
    async with endpoint(Reply(status, {"error": f"no: {KEY}"})) as upstream:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream).create_chat_completion(messages=[])
    assert len(upstream.requests) == 1
    assert caught.value.status == status
    assert caught.value.response_content == b'{"error":"no: ****"}'
    assert KEY not in repr(caught.value) + str(caught.value)


BASIC = "Basic dXNlcjpwQDpzcw=="  # user:p@:ss


@pytest.mark.parametrize(
    ("key", "sent"),
    [(KEY, f"Bearer {KEY}"), ("x", "Bearer x"), ("dummy", BASIC), ("EMPTY", BASIC), ("", BASIC)],
)
async def test_credentials_in_the_url_are_basic_authentication_where_there_is_no_key(key, sent):
    async with endpoint(OK) as upstream:
        client = NeMoGymAsyncOpenAI(base_url=upstream.base_url.replace("://", "://user:p%40:ss@"), api_key=key)
        await client.create_chat_completion()
        await client.create_tokenize()
    assert [(request.path, request.headers["Authorization"]) for request in upstream.requests] == [
        ("/v1/chat/completions", sent), ("/tokenize", sent),
    ]  # fmt: skip


@pytest.mark.parametrize("key", [KEY, "dummy"])
async def test_credentials_in_the_url_are_in_no_error_and_no_log(key, caplog):
    caplog.set_level(logging.DEBUG)
    echo = lambda request: Reply(500, str(request.headers).encode() + b" hunter2@hunter2 hunter2%40hunter2")  # noqa: E731
    async with endpoint(echo) as upstream:
        client = NeMoGymAsyncOpenAI(base_url=upstream.base_url.replace("://", "://user:hunter2%40hunter2@"), api_key=key)
        with pytest.raises(aiohttp.ClientResponseError) as refused:
            await client.create_response(input="a")
        with pytest.raises(aiohttp.ClientResponseError) as malformed:
            client.validated(NeMoGymResponse, {"id": "http://user:hunter2%40hunter2@h"})
    client = NeMoGymAsyncOpenAI(base_url="http://user:hunter2%40hunter2@127.0.0.1:9/v1", api_key=key, retry_budget_seconds=0)
    with pytest.raises(aiohttp.ClientConnectorError) as unreachable:
        await client.create_response(input="a")
    told = [repr(error.value) + str(error.value) + str(vars(error.value)) for error in (refused, malformed, unreachable)]
    for text in (*told, caplog.text):
        assert "hunter2" not in text
        assert "dXNlcjpodW50ZXIyQGh1bnRlcjI=" not in text
    assert (b"Basic ****" in refused.value.response_content) == (key == "dummy")


def without_seeds(request):
    return Reply(400, {"error": {"message": "Unknown parameter: 'seed'."}}) if "seed" in request.body else OK


async def test_an_endpoint_that_refuses_seeds_is_asked_without_them_from_then_on(caplog):
    async with endpoint(without_seeds) as upstream:
        client = client_of(upstream)
        for seed in range(3):
            assert (await client.create_chat_completion(a=1, seed=seed))["id"] == "chatcmpl-1"
    assert [request.body for request in upstream.requests] == [{"a": 1, "seed": 0}, {"a": 1}, {"a": 1}, {"a": 1}]
    assert caplog.text.count("[model_refusal url=") == 1


@pytest.mark.parametrize(
    ("reply", "requests"),
    [
        (Reply(400, {"error": "input: too long, seed: 1"}), 2),  # it names the seed, but is no better without
        (Reply(400, {"error": "bad input"}), 1),
        (Reply(401, {"error": "seed"}), 1),
    ],
)
async def test_an_endpoint_that_refuses_something_else_keeps_its_seeds(reply, requests, caplog):
    async with endpoint(*[reply] * requests, OK) as upstream:
        client = client_of(upstream)
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client.create_chat_completion(seed=1)
        assert caught.value.status == reply.status
        await client.create_chat_completion(seed=2)
    assert len(upstream.requests) == requests + 1
    assert upstream.requests[-1].body == {"seed": 2}
    assert "model_refusal" not in caplog.text


async def test_500_is_tried_three_times_and_its_body_is_kept_up_to_2000_characters():
    async with endpoint(Reply(500, b"x" * 5000)) as upstream:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream).create_response(input="a")
    assert len(upstream.requests) == 3
    assert caught.value.status == 500
    assert caught.value.response_content == b"x" * 2000


async def test_500_then_success():
    async with endpoint(Reply(500, b"once"), OK) as upstream:
        assert (await client_of(upstream).create_chat_completion())["id"] == "chatcmpl-1"


@pytest.mark.parametrize("status", [429, 502, 503, 504, 520])
async def test_overload_is_retried_until_it_passes(status):
    async with endpoint(Reply(status, b"busy"), Reply(status, b"busy"), OK) as upstream:
        assert (await client_of(upstream).create_chat_completion())["id"] == "chatcmpl-1"
    assert len(upstream.requests) == 3


async def test_overload_ends_with_the_budget():
    async with endpoint(Reply(429, b"slow down")) as upstream:
        began = time.monotonic()
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream, retry_budget_seconds=1.0).create_chat_completion()
    assert time.monotonic() - began < 10
    assert caught.value.status == 429
    assert caught.value.response_content == b"slow down"
    assert 2 <= len(upstream.requests) <= 4


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honoured(form):
    value = "1" if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    async with endpoint(Reply(429, b"", {"Retry-After": value}), OK) as upstream:
        began = time.monotonic()
        await client_of(upstream).create_chat_completion()
    assert 0.9 <= time.monotonic() - began < 20


async def test_a_retry_after_beyond_the_budget_ends_at_once():
    async with endpoint(Reply(429, b"tomorrow", {"Retry-After": "86400"})) as upstream:
        began = time.monotonic()
        with pytest.raises(aiohttp.ClientResponseError):
            await client_of(upstream).create_chat_completion()
    assert time.monotonic() - began < 30
    assert len(upstream.requests) == 1


async def test_an_exhausted_quota_is_not_worth_waiting_for():
    async with endpoint(Reply(429, {"error": {"code": "insufficient_quota"}})) as upstream:
        with pytest.raises(aiohttp.ClientResponseError):
            await client_of(upstream).create_chat_completion()
    assert len(upstream.requests) == 1


async def test_a_refused_connection_is_retried_within_the_budget_and_raised_as_it_is():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        client = NeMoGymAsyncOpenAI(base_url=url, api_key=KEY, retry_budget_seconds=0.5)
        began = time.monotonic()
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.create_chat_completion()
        assert time.monotonic() - began < 10
        with pytest.raises(aiohttp.ClientConnectorError):
            await NeMoGymAsyncOpenAI(base_url=url, api_key=KEY, max_connection_retries=0).create_chat_completion()


@pytest.mark.parametrize("body", [{"error": {"message": "provider down"}, "choices": None}, {"choices": []}])
async def test_a_200_without_choices_is_a_failure_of_the_provider(body):
    async with endpoint(Reply(200, body), OK) as upstream:
        assert (await client_of(upstream).create_chat_completion())["id"] == "chatcmpl-1"
    async with endpoint(Reply(200, body)) as upstream:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream).create_chat_completion()
    assert len(upstream.requests) == 3
    assert caught.value.status == 502
    assert b"answered 200 without `choices`" in caught.value.response_content


async def test_the_status_that_a_router_puts_into_its_body_counts():
    async with endpoint(Reply(200, {"error": {"code": 401, "message": "bad key"}})) as upstream:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream).create_chat_completion()
    assert (caught.value.status, len(upstream.requests)) == (401, 1)


async def test_a_page_instead_of_json_is_named_at_once():
    async with endpoint(Reply(200, b"<html>login</html>")) as upstream:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client_of(upstream).create_chat_completion()
    assert len(upstream.requests) == 1
    assert b"not JSON" in caught.value.response_content
    assert b"<html>login" in caught.value.response_content


async def test_the_first_failure_is_reported_at_once_in_one_line(caplog):
    caplog.set_level(logging.WARNING)
    async with endpoint(Reply(429, f"wait\n{KEY} ".encode() + b"y" * 500), OK) as upstream:
        await client_of(upstream).create_chat_completion()
    [line] = [record.getMessage() for record in caplog.records if "model_retry" in record.getMessage()]
    assert line.startswith(f"[model_retry url={upstream.base_url}/chat/completions status=429 kind=rate_limit try=1 max_tries=")
    assert "error_msg=wait **** yyy" in line
    assert len(line.partition("error_msg=")[2]) == 201


async def test_many_calls_do_not_flood_the_log(caplog):
    caplog.set_level(logging.WARNING)
    async with endpoint(Reply(503, b"busy")) as upstream:
        client = client_of(upstream, retry_budget_seconds=0.3)
        await asyncio.gather(*(client.create_chat_completion() for _ in range(50)), return_exceptions=True)
    assert len([record for record in caplog.records if "model_retry" in record.getMessage()]) == 1


async def test_an_answer_of_another_form_is_named():
    client = NeMoGymAsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY)
    assert client.validated(NeMoGymResponse, responses_answer()).output_text == "Hello"
    with pytest.raises(aiohttp.ClientResponseError) as caught:
        client.validated(NeMoGymChatCompletion, {"choices": [{"message": {"role": "user"}}], "created": 1, "model": "m"})
    assert caught.value.status == 502
    assert b"not a NeMoGymChatCompletion: id: Field required" in caught.value.response_content


async def test_an_endpoint_that_never_answers_ends_with_the_limit_of_an_attempt():
    async with endpoint(Reply(delay=30)) as upstream:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"no complete answer from http://127\S+/chat/completions within 0.2 s"):
            await client_of(upstream, timeout_seconds=0.2, retry_budget_seconds=0).create_chat_completion()
    assert time.monotonic() - began < 5
    assert len(upstream.requests) == 1


async def test_a_cancelled_call_closes_its_connection_at_once():
    asked, closed = asyncio.Event(), asyncio.Event()

    async def silent(reader, writer):
        await reader.read(100_000)
        asked.set()
        await reader.read()  # returns at the end of the connection
        closed.set()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        call = asyncio.create_task(NeMoGymAsyncOpenAI(base_url=url, api_key=KEY).create_response(input="a"))
        await asked.wait()
        call.cancel()
        async with asyncio.timeout(2):
            await closed.wait()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_cancelled_call_is_not_tried_again():
    async with endpoint(Reply(429, b"busy", {"Retry-After": "1"})) as upstream:
        call = asyncio.create_task(client_of(upstream).create_response(input="a"))
        while not upstream.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(1.2)
        assert len(upstream.requests) == 1
