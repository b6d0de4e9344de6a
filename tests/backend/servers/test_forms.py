"""Environments may take HTML forms and files, as FastAPI has them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Form, UploadFile

from nemo_gym.base_resources_server import BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer
from tests.component_servers import client_of, make_server


class Desk(SimpleResourcesServer):
    """Takes a form with a text and a file."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/hand_in")(self.hand_in)
        return app

    async def hand_in(self, title: Annotated[str, Form()], paper: UploadFile) -> dict[str, Any]:
        return {"title": title, "name": paper.filename, "bytes": len(await paper.read())}

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=0.0)


async def test_a_form_with_a_file() -> None:
    async with client_of(make_server(Desk)) as client:
        answer = await client.post("/hand_in", data={"title": "é"}, files={"paper": ("a.txt", b"abc")})
        assert answer.json() == {"title": "é", "name": "a.txt", "bytes": 3}
        assert (await client.post("/hand_in", data={"title": "x"})).status_code == 422
