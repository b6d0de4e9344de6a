"""What a `manifest.yaml` must hold, checked without a validation library: listings read manifests, and importing one takes longer than they may.

Texts are taken without blanks around them; numbers and switches may be written as texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from backend.config.schema import DATASET_TYPES, DOMAINS, one_of
from backend.errors import closest

Check = Callable[[Any], Iterator[tuple[str, str]]]
"""Yields what is wrong with a value: the path below it (empty for the value itself), and the sentence."""

DRIVER_PROFILE = "external-rollout-driver"
_CUSTOM_PROFILES = ("custom-gym-verifier", "custom-gym-agent-loop")
_PROFILES = (*_CUSTOM_PROFILES, "external-agent-loop", DRIVER_PROFILE)
_NO_LICENSES = ("internal", "proprietary", "unknown")
_DRIVER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_REPOSITORY = re.compile(r"(?:https?|ssh|git|file)://\S+|[^@\s]+@[^:\s]+:\S+")
_TRUE, _FALSE = ("true", "yes", "on", "1", "t", "y"), ("false", "no", "off", "0", "f", "n")


def manifest_problems(tree: Mapping[Any, Any]) -> list[str]:
    """Everything that makes `tree` no manifest, a sentence for each; none for a valid one."""
    problems = [f"{path or 'the manifest'} {message}" for path, message in _mapping(_FIELDS, _REQUIRED, "a manifest")(tree)]
    return problems or list(_contradictions(tree))


def _contradictions(tree: Mapping[Any, Any]) -> Iterator[str]:
    """What does not go together in a manifest whose fields are all right."""
    profile, given = tree["integration_profile"], {key for key, value in tree.items() if value is not None}
    wanted = []
    if profile in _CUSTOM_PROFILES:
        wanted.append("model_server")
    if profile == DRIVER_PROFILE:
        wanted.append("rollout_driver")
    elif "rollout_driver" in given:
        yield f"rollout_driver is for the profile {DRIVER_PROFILE} only"
    if tree["kind"] == "benchmark":
        wanted += ["canonical_split", "standard_prompt_config"]
        if not any(entry["type"] == "benchmark" for entry in tree["datasets"]):
            yield "datasets must hold one of type benchmark"
    if missing := [key for key in wanted if key not in given]:
        yield f"the manifest lacks {', '.join(missing)}"


def _text(value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str):
        yield "", f"must be a text, not {value!r}; quote it" if isinstance(value, int | float) else "must be a text"
    elif not value.strip():
        yield "", "must not be empty"


def _choice(*allowed: str) -> Check:
    def check(value: Any) -> Iterator[tuple[str, str]]:
        if value not in allowed:
            near = closest(value, allowed) if isinstance(value, str) else None
            yield "", f"is {value!r}. {one_of(allowed)}" + (f". Did you mean `{near}`?" if near else "")

    return check


def _pattern(pattern: re.Pattern[str], meaning: str) -> Check:
    def check(value: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(value, str) or not pattern.fullmatch(value.strip()):
            yield "", f"must be {meaning}"

    return check


def _optional(check: Check) -> Check:
    return lambda value: iter(()) if value is None else check(value)


def _mapping(fields: Mapping[str, Check], required: tuple[str, ...], noun: str) -> Check:
    """A mapping with these fields and no others."""

    def check(value: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(value, Mapping):
            yield "", "must be a mapping"
            return
        if missing := [key for key in required if key not in value]:
            yield "", f"lacks {', '.join(missing)}"
        for key, item in value.items():
            if key not in fields:
                near = closest(key, fields) if isinstance(key, str) else None
                yield str(key), f"is not a key of {noun}" + (f". Did you mean `{near}`?" if near else "")
                continue
            for path, message in fields[key](item):
                yield f"{key}{'.' if path and not path.startswith('[') else ''}{path}", message

    return check


def _list(check: Check, name_of: Callable[[Any], Any]) -> Check:
    """A list of at least one element, whose names are all different."""

    def check_list(value: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(value, list) or not value:
            yield "", "must be a list of at least one element"
            return
        wrong = [
            (f"[{index}]{'.' if path else ''}{path}", text) for index, item in enumerate(value) for path, text in check(item)
        ]
        yield from wrong
        names = [] if wrong else [name_of(item) for item in value]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield "", f"names {name!r} twice"

    return check_list


def _number(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _range(value: Any) -> Iterator[tuple[str, str]]:
    ends = [_number(end) for end in value] if isinstance(value, list) else []
    low, high = ends if len(ends) == 2 else (None, None)
    if low is None or high is None:
        yield "", "must be two numbers, the lowest and the highest reward"
    elif low >= high:
        yield "", f"must have its lower end first, not [{value[0]}, {value[1]}]"


def _switch(value: Any) -> Iterator[tuple[str, str]]:
    if str(value).lower() not in (*_TRUE, *_FALSE):
        yield "", "must be true or false"


def _repeats(value: Any) -> Iterator[tuple[str, str]]:
    number = _number(value)
    if number is None or number < 1 or not number.is_integer():
        yield "", "must be a whole number of at least 1"


def _day(value: Any) -> Iterator[tuple[str, str]]:
    try:
        day = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or day.time() != datetime.min.time():
        yield "", "must be a date like 2026-01-31"


def _license(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and (value.strip() in _NO_LICENSES or _is_license_expression(value.strip())):
        return
    yield "", f"must be an SPDX license expression, or one of {', '.join(_NO_LICENSES)}"


def _is_license_expression(text: str) -> bool:
    try:  # here, because most manifests do without
        from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
    except ImportError:  # releases before 24.2 do not know licenses, and who has one may write what is right
        return True

    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return False
    return True


def _dataset(value: Any) -> Iterator[tuple[str, str]]:
    wrong = list(_DATASET(value))
    yield from wrong
    if not wrong and value["type"] == "benchmark" and value.get("prepare_script") is None:
        yield "", "lacks prepare_script"


_DATASET = _mapping(
    {
        "name": _text,
        "type": _choice(*DATASET_TYPES),
        "jsonl_fpath": _text,
        "prepare_script": _optional(_text),
        "prompt_config": _optional(_text),
        "num_repeats": _repeats,
    },
    ("name", "type", "jsonl_fpath"),
    "a data set",
)
_REQUIRED = (
    "name",
    "version",
    "kind",
    "integration_profile",
    "domain",
    "description",
    "modality",
    "authors",
    "reward",
    "resources_server",
    "agent_server",
    "datasets",
)
_FIELDS: dict[str, Check] = {
    "name": _text,
    "version": _text,
    "kind": _choice("environment", "benchmark"),
    "integration_profile": _choice(*_PROFILES),
    "domain": _choice(*DOMAINS),
    "description": _text,
    "modality": _text,
    "authors": _list(_text, str.strip),
    "reward": _mapping({"range": _range, "higher_is_better": _switch}, ("range", "higher_is_better"), "a reward"),
    "resources_server": _text,
    "agent_server": _text,
    "datasets": _list(_dataset, lambda entry: entry["name"].strip()),
    "licensing": _license,
    "determinism": _choice("seeded", "stochastic", "unknown"),
    "model_server": _optional(_text),
    "rollout_driver": _optional(_pattern(_DRIVER, "a function like package.module:name")),
    "grading_mode": _optional(_text),
    "session_model": _optional(_choice("episode", "step")),
    "state": _optional(_choice("none", "per_session")),
    "sandbox": _optional(_text),
    "canonical_split": _optional(_text),
    "standard_prompt_config": _optional(_text),
    "adopted_from": _optional(
        _mapping(
            {
                "source": _pattern(_REPOSITORY, "the address of a repository"),
                "ref": _pattern(re.compile(r"\S+"), "a word"),
                "reconciled": _day,
            },
            ("source", "ref", "reconciled"),
            "an origin",
        )
    ),
    "lifecycle": _choice("active", "deprecated"),
}
