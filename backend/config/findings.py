"""What resolution has to say about a configuration: problems that stop it and remarks that do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from backend.errors import GymError, Place


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful."""

    severity: Literal["error", "warning"]
    message: str
    place: Place | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place and str(self.place) else self.message


class Unresolvable(Exception):
    """Ends a resolution whose problems are all noted already; never leaves this package."""


@dataclass(slots=True)
class Findings:
    """Collects, in the order of the stages that found them, so that one run tells everything."""

    errors: list[GymError] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def error(self, error: GymError) -> None:
        """Note a problem and go on."""
        self.errors.append(error)

    def warn(self, message: str, place: Place | None = None, hint: str | None = None) -> None:
        """Note a remark, once."""
        finding = Finding("warning", message, place, hint)
        if finding not in self.warnings:
            self.warnings.append(finding)

    def stop_on_errors(self) -> None:
        """End here if there are problems: what follows would only report their consequences."""
        if self.errors:
            raise Unresolvable

    def as_findings(self) -> tuple[Finding, ...]:
        """Problems first, then remarks."""
        problems = [
            Finding("error", "\n".join([error.message, *error.details]), error.place, error.hint) for error in self.errors
        ]
        return (*problems, *self.warnings)


def raise_errors(errors: Iterable[GymError]) -> None:
    """Raise the first of `errors` (at least one) with one line for each of the others."""
    first, *others = errors
    for other in others:
        where = f"{other.place}: " if other.place and str(other.place) else ""
        first.details = (*first.details, f"also: {where}{other.message}")
    raise first
