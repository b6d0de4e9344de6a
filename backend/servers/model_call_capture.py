"""Records of every model call of an observed rollout: one JSON line per call, durable before the caller has its answer.

Only calls below the rollout prefix are recorded, in `<dir>/<rollout id>.capture.jsonl`. A failure to record never fails the call; it
leaves the marker `<rollout id>.capture.incomplete`. The lines are the user's data and are not masked.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, model_validator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.errors import GymError
from backend.io.files import make_folder
from backend.io.json_codec import dumps, loads
from backend.io.jsonl import read_jsonl
from backend.servers.model_call_line import ModelCall
from backend.servers.rollout_correlation import ROLLOUT_PREFIX, is_rollout_id

logger = logging.getLogger(__name__)

DIALECTS = {"/v1/responses": "responses", "/v1/chat/completions": "chat", "/v1/messages": "messages"}


class ModelCallCaptureConfig(BaseModel):
    """The two top-level keys of model-call capture; a folder is required when it is on, and must be absolute."""

    observability_enabled: bool = False
    model_call_capture_dir: str | None = None

    @model_validator(mode="after")
    def _has_folder(self) -> ModelCallCaptureConfig:
        if self.observability_enabled and not (self.model_call_capture_dir and os.path.isabs(self.model_call_capture_dir)):
            raise ValueError("observability_enabled needs model_call_capture_dir: an absolute path, the same for all servers")
        return self

    @classmethod
    def from_global_config(cls, config: Any) -> ModelCallCaptureConfig:
        """The two keys of a configuration. Raises `GymError` when capture is on and has no usable folder."""
        try:
            return cls(
                observability_enabled=observability_enabled_from_config(config),
                model_call_capture_dir=_text_or_none(config.get("model_call_capture_dir")),
            )
        except ValueError:
            raise GymError(
                "observability_enabled needs a folder for the records of model calls",
                hint="set model_call_capture_dir to an absolute path, the same for all servers and the collector",
            ) from None


def observability_enabled_from_config(global_config_dict: Any) -> bool:
    """Whether a configuration switches model-call capture on."""
    return global_config_dict.get("observability_enabled") is True


class CaptureStore:
    """The capture files below one folder. Safe for several processes: each line is written under a lock of its file."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def path_for(self, rollout_id: str) -> Path:
        """The file of a rollout's records."""
        return self.root / f"{rollout_id}.capture.jsonl"

    def record(self, rollout_id: str, line: Mapping[str, Any]) -> None:
        """Append one record and wait until it is on the disk. Raises `GymError` or OSError."""
        make_folder(self.root)
        descriptor = os.open(self.path_for(rollout_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            data = memoryview(dumps(dict(line)) + b"\n")
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, rollout_id: str) -> list[dict[str, Any]]:
        """All records of a rollout, in the order of their completion. Raises `GymError` for a file that is missing or damaged."""
        return [line.value for line in read_jsonl(self.path_for(rollout_id))]

    def read_available(self, rollout_id: str) -> tuple[list[dict[str, Any]], int]:
        """The records that can be read, and the number of lines that cannot. No file: none of either."""
        path = self.path_for(rollout_id)
        if not path.exists():
            return [], 0
        records: list[dict[str, Any]] = []
        damaged = 0
        for raw in path.read_bytes().split(b"\n"):
            if not raw.strip():
                continue
            try:
                value = loads(raw)
            except ValueError:
                value = None
            if isinstance(value, dict):
                records.append(value)
            else:
                damaged += 1
        return records, damaged

    def mark_incomplete(self, rollout_id: str) -> None:
        """Leave the marker that says that a record of this rollout was lost."""
        make_folder(self.root)
        self._marker(rollout_id).touch()

    def is_incomplete(self, rollout_id: str) -> bool:
        """Whether a record of this rollout was lost."""
        return self._marker(rollout_id).exists()

    def delete(self, rollout_id: str) -> None:
        """Remove what an earlier run left for this id."""
        self.path_for(rollout_id).unlink(missing_ok=True)
        self._marker(rollout_id).unlink(missing_ok=True)

    def _marker(self, rollout_id: str) -> Path:
        return self.root / f"{rollout_id}.capture.incomplete"


class ModelCallCapture:
    """Serves every route also below the rollout prefix, and records the prefixed calls when there is a store.

    What is forwarded stays unchanged; only the last piece of the answer, or the event that ends a stream, waits for its record.
    """

    def __init__(self, app: ASGIApp, server_name: str, store: CaptureStore | None = None) -> None:
        self.app = app
        self.model_ref = {"type": "responses_api_models", "name": server_name}
        self.store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = ROLLOUT_PREFIX.match(scope["path"]) if scope["type"] == "http" else None
        if match is None:
            await self.app(scope, receive, send)
            return
        path, rollout_id = match["rest"], match["id"]
        scope = {**scope, "path": path, "raw_path": path.encode()}
        dialect = DIALECTS.get(path) if scope["method"] == "POST" else None
        if self.store is None or dialect is None or not is_rollout_id(rollout_id):
            await self.app(scope, receive, send)
            return
        await self._recorded(ModelCall(dialect, self.model_ref), rollout_id, self.store, scope, receive, send)

    async def _recorded(
        self, call: ModelCall, rollout_id: str, store: CaptureStore, scope: Scope, receive: Receive, send: Send
    ) -> None:
        saved = False

        async def save() -> None:
            nonlocal saved
            if not saved:
                saved = True
                await asyncio.to_thread(_save, store, rollout_id, call)

        async def listening_receive() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                call.request += message.get("body", b"")
            return message

        async def listening_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.take_start(message)
            elif message["type"] == "http.response.body":
                ends = call.add_answer(message.get("body", b""))
                if ends or not message.get("more_body"):
                    await save()
            await send(message)

        try:
            await self.app(scope, listening_receive, listening_send)
        except Exception as error:
            call.take_error(error)
            await save()
            raise
        except asyncio.CancelledError:
            call.category = "incomplete"
            if not saved:
                _save(store, rollout_id, call)
            raise


def _save(store: CaptureStore, rollout_id: str, call: ModelCall) -> None:
    try:
        store.record(rollout_id, call.line())
    except (OSError, ValueError, GymError) as error:
        logger.warning("the record of a model call of rollout %s is lost: %s", rollout_id, error)
        try:
            store.mark_incomplete(rollout_id)
        except (OSError, ValueError, GymError):
            pass


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
