"""`gym env validate` for configurations."""

from __future__ import annotations

import sys
from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.cli.render_config import finding_json
from backend.cli.request_building import config_request
from backend.config.validation import ValidationReport, validate_config
from backend.errors import ExitCode, UsageError
from backend.io.text import printable

_ON = ("true", "yes", "on", "1")
_OFF = ("false", "no", "off", "0")


def run(parsed: Parsed) -> int:
    """Check a configuration; 0 when it is valid, 1 when it is not."""
    request = config_request(parsed, warn)
    if not (request.config_paths or request.overrides or request.flag_values):
        warn("nothing is selected, so there is nothing to check: name a --benchmark, a --resources-server or a --config")
    strict = "strict" in parsed.values
    report = validate_config(request, strict=strict)
    if not strict and _asks_for_strict(report):
        report = validate_config(request, strict=True)
    if parsed.json:
        print_json(_as_json(report))
    else:
        _show(report)
    return ExitCode.OK if report.valid else ExitCode.BAD_INPUT


def _asks_for_strict(report: ValidationReport) -> bool:
    """Whether `strict` is set by a word or a file. What is not valid as it is cannot tell, and need not."""
    value = report.resolved.get("strict", False) if report.resolved is not None else False
    text = str(value).lower()
    if text not in ("none", *_ON, *_OFF):
        raise UsageError(f"invalid configuration: strict (needs true or false, not `{text}`)")
    return text in _ON


def _show(report: ValidationReport) -> None:
    for finding in report.findings:
        label = "Error" if finding.severity == "error" else "Warning"
        print(f"{label}: {printable(str(finding))}", file=sys.stderr)
        for name, text in (("hint", finding.hint), ("fix", finding.fix)):
            if text:
                print(f"  {name}: {printable(text)}", file=sys.stderr)
    if report.valid:
        say("✓ Config is valid.")
    else:
        count = sum(finding.severity == "error" for finding in report.findings)
        print(f"{count} problem{'' if count == 1 else 's'} found.", file=sys.stderr, flush=True)


def _as_json(report: ValidationReport) -> dict[str, Any]:
    return {"valid": report.valid, "findings": [finding_json(finding) for finding in report.findings]}
