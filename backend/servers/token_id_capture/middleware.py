"""Opens the capture of each call that came in below the token-capture prefix."""

from __future__ import annotations

from uuid import uuid4

from starlette.types import ASGIApp, Receive, Scope, Send

from backend.servers.capture_context import CaptureContext, reset_token_sink, set_token_sink
from backend.servers.rollout_correlation import ROLLOUT_PREFIX, is_rollout_id
from backend.servers.token_id_capture.lineage import LineageStore
from backend.servers.token_id_capture.store import TokenSink


class TokenCapture:
    """Gives every call below `/ng-rollout/<id>/training-token-capture` a capture context; the routes do the rest."""

    def __init__(
        self, app: ASGIApp, token_sink: TokenSink, lineage_store: LineageStore | None, *, delta_records: bool = False
    ) -> None:
        self.app = app
        self.token_sink = token_sink
        self.lineage_store = lineage_store
        self.delta_records = delta_records

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = ROLLOUT_PREFIX.match(scope["path"]) if scope["type"] == "http" else None
        if match is None or not match["capture"] or not is_rollout_id(match["id"]):
            await self.app(scope, receive, send)
            return
        context = CaptureContext(
            rollout_id=match["id"],
            model_call_id=uuid4().hex,
            token_sink=self.token_sink,
            lineage_store=self.lineage_store,
            delta_records=self.delta_records,
        )
        token = set_token_sink(context)
        try:
            await self.app(scope, receive, send)
        finally:
            reset_token_sink(token)
