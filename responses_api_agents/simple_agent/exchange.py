"""What an agent needs when it speaks with its servers: the cookies that tie calls to a session, and one checked model call."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from fastapi import Request, Response
from pydantic import ValidationError

from nemo_gym.base_responses_api_agent import SimpleResponsesAPIAgent
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
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


_WHAT_ANSWERS = ("responses", "setup_webserver", "setup_session_middleware", "setup_exception_middleware")


def answers_as(agent: SimpleResponsesAPIAgent, owner: type[SimpleResponsesAPIAgent]) -> bool:
    """Whether `/v1/responses` of `agent` is `owner`'s, so that calling `responses` gives what a request to it would.

    A subclass with a `responses` of its own may have any signature and result that FastAPI makes sense of, and one that sets up its own
    application may serve something else there: those are asked over HTTP (`ask_agent`).
    """
    return all(getattr(type(agent), name) is getattr(owner, name) for name in _WHAT_ANSWERS)


async def own_answer(
    agent: SimpleResponsesAPIAgent,
    owner: type[SimpleResponsesAPIAgent],
    request: Request,
    path: str,
    rollout_id: str | None,
    params: NeMoGymResponseCreateParamsNonStreaming,
    cookies: Cookies,
) -> NeMoGymResponse:
    """What `agent` answers to `params` at `path`, its own `/v1/responses`; the cookies that it sets are added to `cookies`.

    The loop of `owner`, whose `responses` takes request, response and body, is called; see `answers_as`. Raises what that raises, and as
    `ask_agent` where a subclass answers.
    """
    if not answers_as(agent, owner):
        return await ask_agent(agent.server_client, agent.config.name, path, params, cookies)
    loop: Any = agent.responses
    side = Response()
    result: NeMoGymResponse = await loop(request_to_self(request, path, rollout_id, cookies), side, params)
    for header in side.headers.getlist("set-cookie"):
        cookies.update(cookie_values(SimpleCookie(header)))
    return result


def request_to_self(request: Request, path: str, rollout_id: str | None, cookies: Cookies) -> Request:
    """`request` as if it had come to `path` with `cookies`."""
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
    return await _ask(client, f"model server `{server}`", server, path, body, cookies)


async def ask_agent(client: ServerClient, server: str, path: str, body: Any, cookies: Cookies | None = None) -> NeMoGymResponse:
    """As `ask_model`, of an agent's loop."""
    return await _ask(client, f"agent `{server}`", server, path, body, cookies)


async def _ask(client: ServerClient, who: str, server: str, path: str, body: Any, cookies: Cookies | None) -> NeMoGymResponse:
    answer = await post(client, server, path, body, cookies)
    try:
        return NeMoGymResponse.model_validate(await get_response_json(answer))
    except ValueError as error:
        reason = invalid_response_reason(error)
    raise RuntimeError(f"the answer of {who} is no response object: {reason}")


def invalid_response_reason(error: ValueError) -> str:
    """Why an answer is no response object: its first wrong field, or what keeps it from being JSON."""
    if not isinstance(error, ValidationError):
        return f"not JSON: {error}"
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
