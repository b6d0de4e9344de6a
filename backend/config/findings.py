"""What resolution has to say about a configuration: problems that stop it and remarks that do not."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

from backend.config.errors import ConfigError
from backend.errors import GymError, Place
from backend.io.redact import Redactor


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful."""

    severity: Literal["error", "warning"]
    message: str
    place: Place | None = None
    hint: str | None = None
    nearest: str | None = None
    """The right name that a wrong one comes closest to."""
    fix: str | None = None
    """What can be copied: an override or flag for the command line, or a line for the file."""

    def masked(self, redactor: Redactor) -> Finding:
        """The finding as it may be shown."""
        hint, fix = (redactor.text(text) if text else None for text in (self.hint, self.fix))
        place = self.place.masked(redactor.text) if self.place else None
        return replace(self, message=redactor.text(self.message), place=place, hint=hint, fix=fix)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place and str(self.place) else self.message


@dataclass(slots=True)
class Findings:
    """Collects, in the order of the stages that found them, so that one run tells everything."""

    errors: list[GymError] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    noted: set[Finding] = field(default_factory=set)
    """The same as a set: many keys of one file may have the same fault."""
    damaged: bool = False
    """Something could not be read or applied, so that the tree is not what was asked for."""
    incomplete: bool = False
    """Whole files are missing: anything that is absent may be absent because of that."""
    holes: set[str] = field(default_factory=set)
    """Top-level keys that lack something for a reason that is told already."""
    redactor: Redactor = field(default_factory=Redactor)
    """Masks what is told; knows the secrets of the layers as soon as these are read."""

    def error(self, error: GymError, *, absence: Iterable[str] = ()) -> None:
        """Note a problem and go on.

        `absence` are the top-level keys that something is missing from; what an earlier problem explains is not told again.
        """
        if not self.explained(absence, getattr(error, "nearest", None)):
            self.errors.append(error)

    def broken(self, error: GymError, *holes: str) -> None:
        """Note a problem that leaves holes in the tree, and go on; without names, anything may be missing."""
        self.errors.append(error)
        self.damaged = True
        self.holes.update(holes)
        self.incomplete = self.incomplete or not holes

    def explained(self, absence: Iterable[str], nearest: str | None = None) -> bool:
        """Whether an earlier problem may be why something is missing. A name that is nearly right is a mistake of its own."""
        names = set(absence)
        return bool(names) and (not self.holes.isdisjoint(names) or (self.incomplete and nearest is None))

    def warn(
        self,
        message: str,
        place: Place | None = None,
        hint: str | None = None,
        *,
        nearest: str | None = None,
        fix: str | None = None,
        absence: Iterable[str] = (),
    ) -> None:
        """Note a remark, once; `absence` as for `error`."""
        hint = hint or (f"Did you mean `{nearest}`?" if nearest else None)
        finding = Finding("warning", message, place, hint, nearest, fix)
        if finding not in self.noted and not self.explained(absence, nearest):
            self.noted.add(finding)
            self.warnings.append(finding)

    def remark(self, error: GymError, *, absence: Iterable[str] = ()) -> None:
        """Note as a remark what is an error elsewhere."""
        for finding in _told(error):
            self.warn(finding.message, finding.place, finding.hint, nearest=finding.nearest, fix=finding.fix, absence=absence)

    def as_findings(self) -> tuple[Finding, ...]:
        """Problems first, key by key, then remarks; secrets are masked."""
        problems = [finding for error in self.errors for finding in _told(error)]
        return tuple(finding.masked(self.redactor) for finding in (*problems, *self.warnings))

    def combined(self) -> GymError | None:
        """The first problem, with one line for each of the others; None where there are none."""
        if not self.errors:
            return None
        first, *others = self.errors
        first = copy(first)
        for other in others:
            where = f"{other.place}: " if other.place and str(other.place) else ""
            first.details = (*first.details, f"also: {where}{other.message}")
        return first.masked(self.redactor.text)

    def raise_first(self) -> None:
        """Raise what `combined` gives, if anything."""
        error = self.combined()
        if error is not None:
            raise error


def _told(error: GymError) -> list[Finding]:
    """An error as findings, one for each of its parts."""
    parts: tuple[GymError, ...] = error.parts if isinstance(error, ConfigError) and error.parts else (error,)
    return [
        Finding(
            "error",
            "\n".join([part.message, *part.details]),
            part.place,
            part.hint,
            part.nearest if isinstance(part, ConfigError) else None,
            part.fix if isinstance(part, ConfigError) else None,
        )
        for part in parts
    ]
