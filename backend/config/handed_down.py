"""A configuration that the environment hands down: it is taken as it is, and files, env.yaml and the command line count for nothing.

A server's process has one, so that what it starts sees the configuration that the server itself was started with.
"""

from __future__ import annotations

from pathlib import Path

from backend.config import defaults, stages
from backend.config.findings import Findings
from backend.config.global_config import handed_down_text
from backend.config.instances import take_inventory
from backend.config.interpolation import resolve_tree
from backend.config.nodes import Node, Origins, plain
from backend.config.request import ConfigRequest
from backend.config.resolved import ResolvedConfig, remark_text, secrets_of, server_instances
from backend.config.stages import DEFAULTS, LayerSource, StageRecorder
from backend.config.yaml_source import parse_nodes
from backend.io.redact import Redactor, collect_secrets
from backend.io.roots import search_roots


def resolve_handed_down(
    request: ConfigRequest, findings: Findings, recorder: StageRecorder | None = None
) -> ResolvedConfig | None:
    """The configuration in the environment as a run uses it; None where there is none, and for requests that do not ask for it.

    It was checked when it was made, so nothing is checked again, and what is shown of it is what was handed down. A run needs values
    that others may have left out: these are filled in, and told to `findings` where they are unusable. Raises ConfigSyntaxError for
    what is no YAML mapping.
    """
    found = handed_down_text() if request.handed_down and request.read_env_file else None
    if found is None:
        return None
    variable, text = found
    root = parse_nodes(text, variable, "initial")
    if request.config_paths or request.flag_values or request.overrides:
        findings.warn(
            f"the environment variable {variable} is the configuration; what the command line says of it counts for nothing",
            hint=f"unset {variable} to use files, flags and overrides",
        )
    secrets = frozenset(secrets_of([root]))
    findings.redactor = Redactor(secrets)
    is_run = recorder is None and not request.validate_only
    if recorder is not None:
        recorder.layers = [
            LayerSource("default", DEFAULTS, None, Node({}, ())),
            LayerSource("initial", variable, None, root.copy()),
        ]
        recorder.after(stages.MERGED, root)
    resolve_tree(root, Findings() if request.validate_only else findings)
    if recorder is not None:
        recorder.after(stages.INTERPOLATED, root)
    cwd = (request.cwd or Path.cwd()).absolute()
    problems = findings if is_run else Findings()
    inventory = take_inventory(root)
    defaults.fill_absent_globals(root, cwd)
    defaults.fill_server_defaults(root, inventory)
    defaults.settle_globals(root, cwd, problems)
    defaults.check_globals(root, inventory, problems)
    tree = plain(root)
    findings.redactor = Redactor(secrets | collect_secrets(tree))
    return ResolvedConfig(
        tree=tree,
        servers=server_instances(inventory, tree),
        origins=Origins(root),
        roots=search_roots(request.search_dirs, cwd),
        env_file=None,
        warnings=tuple(remark_text(finding) for finding in findings.warnings),
        redactor=findings.redactor,
    )
