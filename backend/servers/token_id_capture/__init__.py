"""Capture of the tokens behind model calls, for training. Importable as `nemo_gym.token_id_capture`.

A model server called below `/ng-rollout/<id>/training-token-capture` gives the tokens of each answer to a *sink*. Before the model is
asked, a *lineage store* tells which earlier call the request continues. After the rollout a *source* gives all records out once, and
`trajectories_from_source` makes one response of them whose items continue each other token by token.
"""

from backend.servers.capture_context import CaptureContext, current_capture_context, reset_token_sink, set_token_sink
from backend.servers.token_id_capture.chains import (
    Chain,
    assert_prefix_contiguity,
    prefix_merging,
    project_chain_to_output_items,
    project_main_chain_response,
    run_builder,
)
from backend.servers.token_id_capture.config import (
    TokenIdCaptureConfig,
    make_token_store,
    token_id_capture_dirs_from_config,
)
from backend.servers.token_id_capture.context import (
    capture_health_snapshot,
    capture_tokens,
    commit_entry,
    give_up_call,
    install_lineage_store,
    install_token_sink,
    install_token_source,
    installed_lineage_store,
    installed_token_sink,
    installed_token_source,
    register_call_intent,
    resolve_parent,
)
from backend.servers.token_id_capture.conversation import assistant_fingerprint, stamp_continuation
from backend.servers.token_id_capture.delivery import (
    TokenHandoff,
    finalize_rollout_token_capture,
    retire_rollout_token_capture,
    rollout_carries_token_ids,
)
from backend.servers.token_id_capture.lineage import (
    FileLineageStore,
    InMemoryLineageStore,
    LineageIndex,
    LineageMatch,
    LineageResolution,
    LineageStore,
    RolloutLineage,
)
from backend.servers.token_id_capture.records import (
    TOKEN_ENTRY_MIN_SCHEMA_VERSION,
    TOKEN_ENTRY_RECORD_SCHEMA_VERSION,
    TOKEN_FIELDS,
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    cumulative_tokens,
    extract_token_fields,
    stamp_lineage,
    validate_rollout_id,
)
from backend.servers.token_id_capture.store import TokenCaptureSnapshot, TokenCaptureStore, TokenSink, TokenSource
from backend.servers.token_id_capture.trajectories import (
    clear_token_captures_for_rollouts,
    trajectories_for_rollout,
    trajectories_from_source,
)

__all__ = [
    "TOKEN_ENTRY_MIN_SCHEMA_VERSION",
    "TOKEN_ENTRY_RECORD_SCHEMA_VERSION",
    "TOKEN_FIELDS",
    "CaptureContext",
    "Chain",
    "FileLineageStore",
    "InMemoryLineageStore",
    "LineageIndex",
    "LineageMatch",
    "LineageResolution",
    "LineageStore",
    "ParentResolutionStatus",
    "RolloutLineage",
    "TokenCaptureSnapshot",
    "TokenCaptureStore",
    "TokenEntry",
    "TokenHandoff",
    "TokenIdCaptureConfig",
    "TokenSink",
    "TokenSource",
    "assert_prefix_contiguity",
    "assistant_fingerprint",
    "capture_health_snapshot",
    "capture_tokens",
    "clear_token_captures_for_rollouts",
    "commit_entry",
    "compute_digest",
    "cumulative_tokens",
    "current_capture_context",
    "extract_token_fields",
    "finalize_rollout_token_capture",
    "give_up_call",
    "install_lineage_store",
    "install_token_sink",
    "install_token_source",
    "installed_lineage_store",
    "installed_token_sink",
    "installed_token_source",
    "make_token_store",
    "prefix_merging",
    "project_chain_to_output_items",
    "project_main_chain_response",
    "register_call_intent",
    "reset_token_sink",
    "resolve_parent",
    "retire_rollout_token_capture",
    "rollout_carries_token_ids",
    "run_builder",
    "set_token_sink",
    "stamp_continuation",
    "stamp_lineage",
    "token_id_capture_dirs_from_config",
    "trajectories_for_rollout",
    "trajectories_from_source",
    "validate_rollout_id",
]
