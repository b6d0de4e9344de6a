"""Everything that is wrong with a configuration, found in one go, without network and without probing ports."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backend.config.errors import ConfigError
from backend.config.findings import Finding, Findings
from backend.config.request import ConfigRequest
from backend.config.resolution import ResolvedConfig, resolve_collecting
from backend.config.routing import DatasetRoute, agent_routes, agents_by_resources_server
from backend.errors import GymError

__all__ = [
    "DatasetRoute",
    "Finding",
    "ValidationReport",
    "agent_routes",
    "agents_by_resources_server",
    "validate_config",
]


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The outcome of a validation."""

    valid: bool
    findings: tuple[Finding, ...]
    """Errors first, then warnings."""
    resolved: ResolvedConfig | None
    """None unless valid."""


def validate_config(request: ConfigRequest, *, strict: bool) -> ValidationReport:
    """Check a configuration as far as that is possible without running it.

    Where problems remain, and unless `strict`, it is checked again with a stand-in for the model: what a missing model alone
    explains is then a warning.
    """
    request = replace(request, validate_only=True)
    first = Findings()
    resolved = resolve_collecting(request, first, strict=strict)
    if not first.errors:
        return ValidationReport(True, first.as_findings(), resolved)
    if strict or request.stand_in_model or not all(isinstance(error, ConfigError) for error in first.errors):
        return ValidationReport(False, first.as_findings(), None)
    second = Findings()
    resolved = resolve_collecting(replace(request, stand_in_model=True), second)
    if second.errors:
        # Told as they were without the stand-in, whose name means nothing to the user.
        remaining = {error.message for error in second.errors}
        first.errors = [error for error in first.errors if error.message in remaining] or second.errors
        return ValidationReport(False, first.as_findings(), None)
    cause = first.errors[0]
    no_model = Finding(
        "warning",
        f"checked with a stand-in for the model (--strict makes this an error): {cause.message}",
        cause.place,
        cause.hint,
        fix=_fix_of(cause),
    )
    return ValidationReport(True, (no_model, *second.warnings), resolved)


def _fix_of(error: GymError) -> str | None:
    """What mends an error, or all of its parts."""
    parts: tuple[GymError, ...] = error.parts if isinstance(error, ConfigError) and error.parts else (error,)
    fixes = dict.fromkeys(part.fix for part in parts if isinstance(part, ConfigError) and part.fix)
    return " ".join(fixes) or None
