"""`gym env validate` for configurations."""

from __future__ import annotations

import sys
from typing import Any

from backend.cli.console import print_json, say, warn
from backend.cli.parser import Parsed
from backend.cli.render_config import finding_json
from backend.cli.request_building import config_request
from backend.config.validation import ValidationReport, validate_config
from backend.errors import ExitCode
from backend.io.text import printable


def run(parsed: Parsed) -> int:
    """Check a configuration; 0 when it is valid, 1 when it is not."""
    request = config_request(parsed, warn)
    if not (request.config_paths or request.overrides or request.flag_values):
        warn("nothing is selected, so there is nothing to check: name a --benchmark, a --resources-server or a --config")
    report = validate_config(request, strict="strict" in parsed.values)
    if parsed.json:
        print_json(_as_json(report))
    else:
        _show(report)
    return ExitCode.OK if report.valid else ExitCode.BAD_INPUT


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
