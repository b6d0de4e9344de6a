"""What decides the rollouts of a run, as flat settings that can be kept, compared and shown.

Left out is what only decides how, where and how fast they are made: addresses, ports, keys, concurrency, folders, descriptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from backend.datasets.server_blocks import server_blocks
from backend.io.json_codec import dumps, loads
from backend.io.redact import is_secret_key
from backend.rollouts.expansion_options import ExpansionOptions

_FREE_KEYS = frozenset({"host", "port", "num_workers", "url", "nemo_gym_log_dir", "model_call_capture_dir"})
_FREE_ENDINGS = ("base_url", "base_urls", "_host", "_port", "_url")
_DESCRIPTIONS = frozenset({"description", "value", "domain", "verified", "license"})
_LONGEST_SHOWN = 80
_UNSET = "(unset)"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that is not what it was; None is a setting that is absent."""

    setting: str
    """Dotted key, or a description of what else has changed."""
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.setting}: {_shown(self.before)} -> {_shown(self.now)}"


def run_settings(options: ExpansionOptions, config: Mapping[str, Any], split: str | None) -> dict[str, Any]:
    """The settings by dotted key: those that shape the rows, and those of the servers in `config`."""
    prompt = options.prompt
    shaping = {
        "split": split,
        "limit": options.limit,
        "num_repeats": options.num_repeats,
        "num_repeats_add_seed": options.add_seed,
        "responses_create_params": options.params,
        "prompt_config": {"user": prompt.user, "system": prompt.system} if prompt is not None else None,
        "agent_map": options.agent_map,
        "fan_out": options.fan_out,
        "skills_ref": options.skills_ref,
    }
    servers = {
        f"{block.key}.{key}": value
        for block in server_blocks(config)
        for key, value in block.fields.items()
        if key not in _DESCRIPTIONS
    }
    # Through JSON, because they are compared with what a file says.
    return {key: loads(dumps(value)) for key, value in _flat("", {**shaping, **servers})}


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[SettingChange]:
    """The settings that differ, in the order of `now`, those that it lacks last; an absent one equals null."""
    return [
        SettingChange(key, before.get(key), now.get(key))
        for key in dict.fromkeys((*now, *before))
        if before.get(key) != now.get(key)
    ]


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not _is_free(str(key)):
                yield from _flat(f"{prefix}.{key}" if prefix else str(key), item)
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flat(f"{prefix}[{number}]", item)
    elif value is not None:
        yield prefix, value


def _is_free(key: str) -> bool:
    last = key.rpartition(".")[2]
    return last in _FREE_KEYS or last.endswith(_FREE_ENDINGS) or is_secret_key(last)


def _shown(value: Any) -> str:
    text = _UNSET if value is None else dumps(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
