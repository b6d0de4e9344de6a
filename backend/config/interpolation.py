"""`${…}`: OmegaConf evaluates them; here it is decided when, and what to say where it cannot.

OmegaConf is loaded only where a tree holds an interpolation (it costs 0.1 s).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from backend.config.errors import ConfigInterpolationError
from backend.config.findings import Findings
from backend.config.fixes import PLACEHOLDER, set_key
from backend.config.nodes import KeyPath, Node, Origin, Setting, child, find, format_path, node_of, parse_path, plain, walk
from backend.config.reach import MOST_LINKS, REFERENCE, Reach
from backend.config.schema import MISSING, SERVER_TYPES
from backend.errors import GymError, closest

if TYPE_CHECKING:
    from omegaconf import DictConfig

POLICY_KEYS = {"policy_base_url": "--model-url", "policy_api_key": "--model-api-key", "policy_model_name": "--model"}

_SIMPLE = re.compile(r"^\$\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}$")
VARIABLE = re.compile(r"\$\{oc\.env:\s*'?([A-Za-z_]\w*)")
"""An environment variable that a text refers to."""
_VARIABLE = re.compile(rf"^{VARIABLE.pattern}'?\s*(?:,[^{{}}]*)?\}}$")
_RESOLVER = re.compile(
    r"^\$\{oc\.(?P<resolver>env|select):\s*(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*(?:,\s*(?P<default>[A-Za-z_/][\w./:@-]*|0|[1-9]\d*)\s*)?\}$",
    re.ASCII,
)
_LEADS_ON = "refers to so many other keys in turn that nobody can mean it"
_CONSTANTS = {"null": None, "true": True, "false": False}
_MISSING_KEY = re.compile(r"Interpolation key '([^']*)' not found")
_MISSING_VARIABLE = re.compile(r"Environment variable '([^']*)' not found")


def is_interpolation(value: Any) -> bool:
    """Whether a value is text that OmegaConf will replace."""
    return isinstance(value, str) and "${" in value


def resolve_tree(root: Node, findings: Findings) -> None:
    """Replace every interpolation below `root` by its value, in place.

    What cannot be resolved is an error at the top level and inside server blocks, where a run would need it; elsewhere it is a
    remark and stays as written. A value that comes out as a mapping or a list belongs to the key that refers to it.
    """
    values: list[tuple[Node, Any]] = []
    wanted: list[tuple[KeyPath, Node]] = []
    reach = Reach(root)
    far: list[tuple[KeyPath, Node]] = []
    for path, node in walk(root):
        if is_interpolation(node.value):
            if reach.is_too_far(path, node):
                far.append((path, node))
                continue
            found, value = quick_value(root, node.value)
            if found:
                values.append((node, value))
            else:
                wanted.append((path, node))
    if far:
        findings.error(_too_far(reach, far))
    problems: list[tuple[KeyPath, Node, _Unresolved]] = []
    if wanted:
        config = _omegaconf(root, far)
        for path, node in wanted:
            try:
                values.append((node, _evaluate(config, path, node.value)))
            except _Unresolved as problem:
                problems.append((path, node, problem))
    for node, value in values:
        origin = _evaluated(root, node.value)
        node.value = node_of(value, node.origin).value
        node.history = (*node.history, Setting(origin, node.value))
    _report(root, problems, findings)


def resolve_text(root: Node, text: str) -> Any:
    """The value of a text with interpolations, seen from the top of `root`; raises ConfigInterpolationError."""
    if not is_interpolation(text):
        return text
    if Reach(root).is_too_far((), Node(text, root.history)):
        raise ConfigInterpolationError(f"cannot resolve `{text}`: it {_LEADS_ON}")
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    key = "_text_"
    try:
        value = OmegaConf.create({**plain(root), key: text})[key]
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except (OmegaConfBaseException, RecursionError, ValueError) as error:
        raise ConfigInterpolationError(f"cannot resolve `{text}`: {_first_line(error)}") from None


def dereference(root: Node, path: KeyPath, node: Node) -> Node | None:
    """The mapping or list that the interpolation `node` stands for in the tree `root`, None where it stands for anything else.

    `path` is where the node is in the tree; only relative interpolations need it.
    """
    target: Node | None = node
    for _ in range(20):
        match = _SIMPLE.match(target.value) if target is not None and isinstance(target.value, str) else None
        if match is None:
            break
        target = find(root, parse_path(match[1]))
    if target is None:
        return None
    if isinstance(target.value, dict | list):
        return target
    return _dereference_any(root, path, node) if is_interpolation(target.value) else None


def unset_policy_hint() -> str:
    """What to do about settings of the model that nobody made."""
    flags = ", ".join(f"{flag} ({key})" for key, flag in POLICY_KEYS.items())
    return f"set them with {flags}, or in env.yaml"


def quick_value(root: Node, text: str, depth: int = 0) -> tuple[bool, Any]:
    """Whether the commonest forms of interpolation apply, and their value; loading OmegaConf for them would cost 0.1 s.

    These are `${a.b}` of a scalar, `${oc.env:NAME}` and `${oc.select:key}`, the latter two with or without a plain default.
    """
    if match := _SIMPLE.match(text):
        return _scalar_at(root, match[1], depth)
    match = _RESOLVER.match(text)
    if match is None:
        return False, None
    name, default = match["name"], match["default"]
    if match["resolver"] == "env":
        if re.fullmatch(r"\w+", name) and name in os.environ:
            return True, os.environ[name]
    else:
        found, value = _scalar_at(root, name, depth)
        if found or "." in name or name in root.value:
            return found, value
    if default is None or default.lower() in ("inf", "nan"):
        return False, None
    value = _CONSTANTS.get(default.lower(), int(default) if default.isdecimal() else default)
    # A variable is always text, and so is what stands in for it.
    return True, str(value) if match["resolver"] == "env" and value is not None else value


def _scalar_at(root: Node, key: str, depth: int) -> tuple[bool, Any]:
    target = find(root, parse_path(key))
    if target is None or isinstance(target.value, dict | list) or target.value == MISSING:
        return False, None
    if is_interpolation(target.value):
        return quick_value(root, target.value, depth + 1) if depth < MOST_LINKS else (False, None)
    return True, target.value


def _evaluated(root: Node, text: str) -> Origin:
    """Where the value of an interpolation comes from: an environment variable, or the place of the first key it names."""
    variable = _VARIABLE.match(text)
    if variable and variable[1] in os.environ:
        return Origin("variable", variable[1])
    for match in REFERENCE.finditer(text):
        if target := find(root, parse_path(match[1])):
            source = target.source
            setter = "" if source.file or not source.text else f", set by {source.text}"
            return Origin("interpolation", f"{text}{setter}", source.file, source.line, source.column)
    return Origin("interpolation", text)


class _Unresolved(Exception):
    def __init__(self, reason: str, key: str | None = None, variable: str | None = None) -> None:
        super().__init__(reason)
        self.key = key
        self.variable = variable


def _omegaconf(root: Node, unwanted: Iterable[tuple[KeyPath, Node]]) -> DictConfig:
    """The tree for OmegaConf without some texts, and without those whose `${` is no grammar: it refuses a tree with one of these."""
    from omegaconf import OmegaConf

    readable = root.copy()
    for path, _ in unwanted:
        if node := find(readable, path):
            node.value = None
    for _, node in walk(readable):
        if is_interpolation(node.value) and _grammar_error(node.value):
            node.value = None
    return OmegaConf.create(plain(readable))


def _grammar_error(text: str) -> str | None:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        OmegaConf.create({"value": text})
    except OmegaConfBaseException as error:
        return _first_line(error)
    return None


def _evaluate(config: DictConfig, path: KeyPath, text: str) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

    if problem := _grammar_error(text):
        raise _Unresolved(f"the interpolation cannot be read ({problem})")
    container: Any = config
    try:
        for key in path[:-1]:
            container = container._get_node(key)
        value = container[path[-1]]
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except InterpolationToMissingValueError:
        raise _Unresolved(MISSING) from None
    except (OmegaConfBaseException, RecursionError, ValueError, TypeError) as error:
        key_match, variable = _MISSING_KEY.search(str(error)), _MISSING_VARIABLE.search(str(error))
        raise _Unresolved(_first_line(error), key_match[1] if key_match else None, variable[1] if variable else None) from None


def _report(root: Node, problems: list[tuple[KeyPath, Node, _Unresolved]], findings: Findings) -> None:
    needed = [problem for problem in problems if _is_needed(root, problem[0])]
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
            findings.warn(error.message, error.place, error.hint, absence=absent)


def _too_far(reach: Reach, far: list[tuple[KeyPath, Node]]) -> GymError:
    """One error for all of them, at the one that begins it."""
    path, node = min(far, key=lambda item: reach.of(*item))
    others = f", and so do {len(far) - 1} others" if len(far) > 1 else ""
    return ConfigInterpolationError(
        f"config value '{format_path(path)}' {_LEADS_ON}{others}", place=node.source.place(format_path(path))
    )


def _is_needed(root: Node, path: KeyPath) -> bool:
    top = child(root, path[0])
    return len(path) == 1 or (top is not None and isinstance(top.value, dict) and any(kind in top.value for kind in SERVER_TYPES))


def _no_model(problems: list[tuple[KeyPath, Node, _Unresolved]]) -> GymError:
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


def _explain(root: Node, path: KeyPath, node: Node, problem: _Unresolved) -> GymError:
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


def _dereference_any(root: Node, path: KeyPath, node: Node) -> Node | None:
    if Reach(root).is_too_far(path, node):
        return None
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        container: Any = OmegaConf.create(plain(root))
        for key in path[:-1]:
            container = container._get_node(key)
        target = container._get_node(path[-1])._maybe_dereference_node()
        value = OmegaConf.to_container(target) if OmegaConf.is_config(target) else None
    except (OmegaConfBaseException, RecursionError, ValueError, AttributeError):
        return None
    return node_of(value, node.origin) if isinstance(value, dict | list) else None


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "recursive interpolation detected"
    return str(error).strip().partition("\n")[0] or type(error).__name__
