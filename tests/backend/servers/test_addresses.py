import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.servers.addresses import server_url, split_credentials


def test_an_ipv6_address_gets_brackets() -> None:
    assert server_url("127.0.0.1", 80) == "http://127.0.0.1:80"
    assert server_url("::1", 80) == "http://[::1]:80"


@pytest.mark.parametrize(
    ("url", "address", "pair"),
    [
        ("http://host/v1?a=b@c", "http://host/v1?a=b@c", None),
        ("http://Aladdin:open%20sesame@host:80/v1", "http://host:80/v1", "Aladdin:open sesame"),
        ("https://token@host", "https://host", "token:"),
        ("https://:secret@[::1]:8000/v1", "https://[::1]:8000/v1", ":secret"),
        ("http://user:p@ss:word@host/v1", "http://host/v1", "user:p@ss:word"),
        ("http://@host/v1", "http://host/v1", None),
    ],
)
def test_credentials_are_split_off(url: str, address: str, pair: str | None) -> None:
    assert split_credentials(url) == (address, pair and f"Basic {base64.b64encode(pair.encode()).decode()}")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_credentials_survive_percent_encoding(user: str, password: str) -> None:
    address, authorization = split_credentials(f"http://{quote(user, safe='')}:{quote(password, safe='')}@host:1/v1")
    assert address == "http://host:1/v1"
    assert authorization is not None
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"{user}:{password}"
