"""Which call's tokens are being captured. Apart from the capture itself, which most servers never load."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.servers.token_id_capture.lineage import LineageResolution, LineageStore
    from backend.servers.token_id_capture.store import TokenSink


@dataclass(slots=True)
class CaptureContext:
    """One call whose tokens are captured."""

    rollout_id: str
    model_call_id: str
    token_sink: TokenSink | None
    lineage_store: LineageStore | None = None
    model: str = ""
    committed: bool = False
    delta_records: bool = False
    """Records hold only the tokens after those of their parent."""
    prefix_requested: bool = False
    prefix_supplied: bool = False
    parent_resolution: LineageResolution | None = None

    @property
    def parent_tokens(self) -> list[int] | None:
        """All tokens of the call that is continued; None unless it is verified."""
        match = self.parent_resolution.match if self.parent_resolution else None
        return None if match is None else list(match.cumulative_token_ids)


_context: ContextVar[CaptureContext | None] = ContextVar("token_capture_context", default=None)


def set_token_sink(context: CaptureContext) -> Token[CaptureContext | None]:
    """Capture the tokens of what runs in the current context; the result undoes it (`reset_token_sink`)."""
    return _context.set(context)


def reset_token_sink(token: Token[CaptureContext | None]) -> None:
    """Undo `set_token_sink`."""
    _context.reset(token)


def current_capture_context() -> CaptureContext | None:
    """The capture of the current call, if there is one."""
    return _context.get()
