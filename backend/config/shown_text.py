"""The text of a YAML file as it may be shown: secrets are masked where they stand, everything else keeps its line and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from backend.config.schema import MISSING
from backend.io.redact import MASK, Redactor, holds_secret, is_secret_key

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REFERENCE = re.compile(r"\$\{(?:oc\.env:)?[\w.]+\}")
"""Says where a value comes from and has no default, so it gives nothing away."""
_TELLS_NOTHING = frozenset(("", "null", "~", "true", "false", MISSING))
_LINE = re.compile(r"""^(?P<lead>[ \t]*(?:-[ \t]+)*["']?(?P<key>[\w.-]+)["']?[ \t]*:[ \t]+)(?P<value>\S.*)$""", re.MULTILINE)


def masked_yaml(text: str) -> str:
    """`text` with every value below a secret's key masked, and those values wherever else they turn up. The number of lines stays.

    A text that is no YAML is masked line by line.
    """
    try:
        root = yaml.compose(text, Loader=_LOADER)
        spans = sorted({span for span in _secret_spans(root, False, set()) if span[0] < span[1]}) if root else []
    except (yaml.YAMLError, ValueError, RecursionError):
        return Redactor().text(_LINE.sub(_masked_line, text))
    pieces, end = [], 0
    for begin, stop, _ in spans:
        pieces += [text[end:begin], MASK, "\n" * text.count("\n", begin, stop)]
        end = stop
    return Redactor(value for _, _, value in spans).text("".join((*pieces, text[end:])))


def _secret_spans(
    node: yaml.Node, secret: bool, seen: set[tuple[int, bool]], parent: str | None = None
) -> Iterator[tuple[int, int, str]]:
    """Where the scalars below secret keys begin and end, and their values."""
    if (id(node), secret) in seen:  # an alias
        return
    seen.add((id(node), secret))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            below = {str(inner.value): None for inner, _ in value.value} if isinstance(value, yaml.MappingNode) else None
            named = name is not None and holds_secret(name, below, parent)
            yield from _secret_spans(value, secret or named, seen, name)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _secret_spans(item, secret, seen)
    elif secret and _tells(node.value):
        yield node.start_mark.index, node.end_mark.index, node.value


def _tells(value: str) -> bool:
    return value.lower() not in _TELLS_NOTHING and not _REFERENCE.fullmatch(value)


def _masked_line(match: re.Match[str]) -> str:
    value = match["value"].strip("\"' \r")
    return match["lead"] + MASK if is_secret_key(match["key"]) and _tells(value) else match[0]
