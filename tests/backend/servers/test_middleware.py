from itertools import pairwise

import aiohttp
import httpx
import pytest
from starlette.routing import Route, Router

from backend.servers.middleware import ErrorEnvelope, innermost_error
from tests.loopback import serving


def failing(name, content):
    """A server whose inner server answered with `content` and a status of 400."""

    async def fail(_request):
        error = aiohttp.ClientResponseError(None, (), status=400, message="Bad")
        error.response_content = content
        raise error

    return ErrorEnvelope(Router(routes=[Route("/", fail)]), server_name=name)


async def answer_of(name, content):
    async with serving(failing(name, content)) as url, httpx.AsyncClient() as client:
        return (await client.get(url)).content


CAUSES = [b"""{"error": "it's \\"full\\""}""", b"plain", "ünïcode".encode(), b"\xff\x00"]


@pytest.mark.parametrize("cause", CAUSES)
async def test_an_error_that_passes_many_servers_grows_by_their_names_only(cause):
    answer = cause
    sizes = []
    for name in ("Model___m", "Agent___a", "Outer___o", "Last___l"):
        answer = await answer_of(name, answer)
        sizes.append(len(answer))
    assert max(later - earlier for earlier, later in pairwise(sizes)) < 80
    assert innermost_error(answer.decode()) == cause.decode("utf-8", "replace")
    assert answer.decode().startswith('"Hit an exception in Last___l calling an inner server: Hit an exception in Outer___o ')
