"""What an agent needs when it speaks with its servers: the cookies that tie calls to a session, and one checked model call."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from fastapi import Request, Response
from pydantic import ValidationError

from nemo_gym.openai_utils import NeMoGymResponse
from nemo_gym.server_utils import ClientResponse, ServerClient, get_response_json, raise_for_status

Cookies = dict[str, str]


def cookies_of(request: Request) -> Cookies:
    """The cookies that came with a request, by name."""
    return dict(request.cookies)


def cookie_values(cookies: Mapping[str, Any]) -> Cookies:
    """The cookies that an answer set, by name, without their attributes."""
    return {name: getattr(cookie, "value", cookie) for name, cookie in cookies.items()}


def set_cookies(response: Response, *jars: Cookies) -> None:
    """Hand cookies on to the caller; of the same name in several jars, the last one's counts."""
    for name, value in {name: value for jar in jars for name, value in jar.items()}.items():
        response.set_cookie(name, value)


def request_to_self(request: Request, path: str, rollout_id: str | None, cookies: Cookies) -> Request:
    """`request` as if it had come to `path` with `cookies`, so that a subclass' own `responses` sees what it would over HTTP."""
    headers = [(name, value) for name, value in request.scope["headers"] if name != b"cookie"]
    if cookies:
        sent = SimpleCookie(cookies).output(attrs=[], header="", sep=";").strip()
        headers.append((b"cookie", sent.encode("latin-1", "replace")))
    path_params = {"rollout_id": rollout_id} if rollout_id else {}
    return Request({**request.scope, "path": path, "raw_path": path.encode(), "path_params": path_params, "headers": headers})


async def post(client: ServerClient, server: str, path: str, body: Any, cookies: Cookies | None = None) -> ClientResponse:
    """A server's answer; its cookies are added to `cookies`. An error status raises `aiohttp.ClientResponseError`."""
    answer = await client.post(server_name=server, url_path=path, json=body, cookies=cookies)
    await raise_for_status(answer)
    if cookies is not None:
        cookies.update(cookie_values(answer.cookies))
    return answer


async def ask_model(client: ServerClient, server: str, path: str, body: Any, cookies: Cookies | None = None) -> NeMoGymResponse:
    """The model server's answer; its cookies are added to `cookies`.

    Raises `aiohttp.ClientResponseError` for an error status and RuntimeError, naming the first wrong field, for an answer that is
    no response object.
    """
    answer = await post(client, server, path, body, cookies)
    try:
        return NeMoGymResponse.model_validate(await get_response_json(answer))
    except ValueError as error:
        reason = invalid_response_reason(error)
    raise RuntimeError(f"the answer of model server `{server}` is no response object: {reason}")


def invalid_response_reason(error: ValueError) -> str:
    """Why an answer is no response object: its first wrong field, or what keeps it from being JSON."""
    if not isinstance(error, ValidationError):
        return f"not JSON: {error}"
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
