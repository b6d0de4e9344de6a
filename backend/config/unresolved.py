"""What to say about interpolations that have no value, and of which of them a run or a validation can do without."""

from __future__ import annotations

from backend.config.errors import ConfigError, ConfigInterpolationError
from backend.config.findings import Findings
from backend.config.fixes import PLACEHOLDER, set_key
from backend.config.nodes import KeyPath, Node, child, find, format_path, walk
from backend.config.reach import Reach
from backend.config.schema import MISSING, SERVER_TYPES
from backend.errors import GymError, closest

POLICY_KEYS = {"policy_base_url": "--model-url", "policy_api_key": "--model-api-key", "policy_model_name": "--model"}
_FIELD_DEPTH = 4
"""Keys from the root to a field of a server block."""
LEADS_ON = "refers to so many other keys in turn that nobody can mean it"


class Unresolved(Exception):
    """An interpolation has no value; what it names is not set, where that is why."""

    def __init__(self, reason: str, key: str | None = None, variable: str | None = None, *, unreadable: bool = False) -> None:
        super().__init__(reason)
        self.key = key
        self.variable = variable
        self.unreadable = unreadable
        """Whether the text itself is wrong, so that no configuration with it can be loaded."""


def unset_policy_hint() -> str:
    """What to do about settings of the model that nobody made."""
    flags = ", ".join(f"{flag} ({key})" for key, flag in POLICY_KEYS.items())
    return f"set them with {flags}, or in env.yaml"


def report_unresolved(
    root: Node, problems: list[tuple[KeyPath, Node, Unresolved]], findings: Findings, as_validated: bool
) -> None:
    """Tell `findings` about what could not be resolved: errors where it is needed, for a validation or a run; remarks elsewhere."""
    needed = [item for item in problems if _is_needed(root, item[0], as_validated and not item[2].unreadable)]
    no_model = [problem for problem in needed if problem[2].key in POLICY_KEYS]
    if no_model:
        findings.error(_no_model(no_model), absence=[str(problem.key) for _, _, problem in no_model])
    for item in problems:
        path, node, problem = item
        if str(problem) == MISSING or item in no_model:  # a `???` is reported where it is
            continue
        error = _explain(root, path, node, problem)
        absent = (str(path[0]), problem.key.partition(".")[0]) if problem.key is not None else ()
        if item in needed:
            findings.error(error, absence=absent)
        else:
            findings.warn(error.message, error.place, error.hint, nearest=error.nearest, fix=error.fix, absence=absent)


def too_far(reach: Reach, far: list[tuple[KeyPath, Node]]) -> GymError:
    """One error for all of them, at the one that begins it."""
    path, node = min(far, key=lambda item: reach.of(*item))
    others = f", and so do {len(far) - 1} others" if len(far) > 1 else ""
    return ConfigInterpolationError(
        f"config value '{format_path(path)}' {LEADS_ON}{others}", place=node.source.place(format_path(path))
    )


def _is_needed(root: Node, path: KeyPath, as_validated: bool) -> bool:
    top = child(root, path[0])
    if len(path) == 1:
        return True
    if top is None or not isinstance(top.value, dict) or not any(kind in top.value for kind in SERVER_TYPES):
        return False
    if not as_validated:
        return True
    below = path[_FIELD_DEPTH:]
    is_field = all(isinstance(key, int) for key in below)
    holder = find(root, path[:-1])
    names_server = (
        len(below) == 1 and holder is not None and isinstance(holder.value, dict) and {"type", "name"} <= holder.value.keys()
    )
    return path[1] in SERVER_TYPES and (is_field or names_server)


def _no_model(problems: list[tuple[KeyPath, Node, Unresolved]]) -> GymError:
    keys = list(dict.fromkeys(str(problem.key) for _, _, problem in problems))
    _, node, _ = problems[0]
    parts = [
        ConfigInterpolationError(
            f"no model is configured: config value '{format_path(path)}' references '{problem.key}', which is not set",
            place=node.source.place(format_path(path)),
            hint=unset_policy_hint(),
            fix=f"{POLICY_KEYS[str(problem.key)]} {PLACEHOLDER}",
        )
        for path, node, problem in problems
    ]
    return ConfigInterpolationError(
        f"no model is configured: {', '.join(keys)} {'is' if len(keys) == 1 else 'are'} not set",
        place=node.source.place(),
        details=[f"  - {format_path(path)} references '{problem.key}' ({node.source})" for path, node, problem in problems],
        hint=unset_policy_hint(),
        parts=parts,
    )


def _explain(root: Node, path: KeyPath, node: Node, problem: Unresolved) -> ConfigError:
    name = format_path(path)
    place = node.source.place(name)
    if problem.variable:
        return ConfigInterpolationError(
            f"config value '{name}' reads the environment variable {problem.variable}, which is not set",
            place=place,
            hint=f"export {problem.variable}, or set the key: {set_key(path, PLACEHOLDER)}",
            fix=f"export {problem.variable}={PLACEHOLDER}",
        )
    if problem.key:
        near = closest(problem.key, [format_path(known) for known, _ in walk(root) if known])
        hint = f"set it: ++{problem.key}={PLACEHOLDER}"
        return ConfigInterpolationError(
            f"config value '{name}' references '{problem.key}', which is not set after merging",
            place=place,
            nearest=near,
            hint=f"{hint}; did you mean `{near}`?" if near else hint,
            fix=f"++{problem.key}={PLACEHOLDER}",
        )
    return ConfigInterpolationError(f"config value '{name}' cannot be resolved: {problem}", place=place)
