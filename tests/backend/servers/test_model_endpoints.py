import asyncio
import time
from types import SimpleNamespace

import pytest

from backend.errors import GymError
from backend.servers.http_client import close_http_session
from backend.servers.model_endpoints import model_endpoints, wait_for_endpoints
from tests.conftest import unused_port
from tests.loopback import Reply, endpoint


@pytest.fixture(autouse=True)
async def _closed_session():
    yield
    await close_http_session()


def endpoints_at(*urls):
    block = {"base_url": list(urls), "api_key": "dummy"}
    return model_endpoints([SimpleNamespace(kind="responses_api_models", name="policy_model", block=block)])


@pytest.mark.parametrize("credentials", ["user:hunter2hunter2@", "жук:p%40:ss@", "token@"])
async def test_an_endpoint_behind_credentials_is_probed_with_them(credentials):
    async with endpoint(Reply(401)) as upstream:
        url = upstream.base_url.replace("://", f"://{credentials}")
        states = [state async for state in wait_for_endpoints(endpoints_at(url, upstream.base_url), 5)]
    assert [state.state for state in states] == ["answering", "answering"]
    assert "hunter2hunter2" not in states[0].url
    sent = [(request.path, request.headers.get("Authorization", "")[:6]) for request in upstream.requests]
    assert sorted(sent) == [("/v1/models", ""), ("/v1/models", "Basic ")]


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "http://[::1", "http://host:99999", "http://host:port/v1"]
)
def test_what_is_no_url_is_named_with_its_key(url):
    with pytest.raises(GymError) as caught:
        endpoints_at(url)
    assert caught.value.message == f"policy_model.base_url is not an http:// or https:// URL: {url}"


def test_a_password_that_is_not_encoded_is_refused_without_being_shown():
    with pytest.raises(GymError) as caught:
        endpoints_at("http://user:hunter2/hunter2@host:80/v1")
    assert caught.value.message.endswith(" http://user:****@host:80/v1")
    assert "write / as %2F" in str(caught.value.hint)


async def test_the_limit_is_used_up_to_its_end(monkeypatch):
    """The last look is at the end of the limit, however long the interval between looks."""
    monkeypatch.setattr("backend.servers.model_endpoints.PROBE_INTERVAL_SECONDS", 60)
    url = f"http://127.0.0.1:{unused_port()}/v1"
    states = []
    with pytest.raises(GymError, match=r"within 0.5 s: \S+ \(from policy_model.base_url\): Connection refused"):
        async with asyncio.timeout(30):
            began = time.monotonic()
            async for state in wait_for_endpoints(endpoints_at(url), 0.5):
                states.append(state)
    assert time.monotonic() - began >= 0.5
    assert [(state.state, state.reason) for state in states] == [("unreachable", "Connection refused")]
