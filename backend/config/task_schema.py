"""The shape of a component's task data: its `task_data.py` exports `TaskData`, a pydantic model or a union of some."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.config.errors import ConfigError
from backend.config.schema import AGENTS, RESOURCES
from backend.errors import Place, closest

TASK_DATA = "task_data.py"
_KINDS = (RESOURCES, AGENTS)


def task_schema(entrypoint: str, roots: Sequence[Path]) -> dict[str, Any]:
    """The JSON Schema of the task data of the component `<type>/<implementation>`.

    Runs the component's module. Raises ConfigError where there is no such component, no schema, or one that cannot be loaded.
    """
    from pydantic import TypeAdapter

    path = _module_path(entrypoint, roots)
    kind, _, name = entrypoint.partition("/")
    spec = importlib.util.spec_from_file_location(f"{kind}.{name.replace('/', '.')}.{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importable(roots), _registered(spec.name, module):
        try:
            spec.loader.exec_module(module)
            schema: dict[str, Any] = TypeAdapter(module.TaskData).json_schema()
        except Exception as error:  # whatever an author's module raises
            raise ConfigError(
                f"cannot load the schema of {entrypoint}: {type(error).__name__}: {error}", place=Place(str(path))
            ) from None
    return schema


def _module_path(entrypoint: str, roots: Sequence[Path]) -> Path:
    if entrypoint.partition("/")[0] not in _KINDS:
        raise ConfigError(
            f"'{entrypoint}' names no component with task data", hint=f"write {RESOURCES}/<name> or {AGENTS}/<name>"
        )
    folder = next((root / entrypoint for root in roots if os.path.isdir(root / entrypoint)), None)
    if folder is None:
        near = closest(entrypoint, _components(roots))
        raise ConfigError(
            f"there is no {entrypoint}", details=["Looked in:", *(f"  {root / entrypoint}" for root in roots)], nearest=near
        )
    if not os.path.isfile(folder / TASK_DATA):
        raise ConfigError(
            f"{entrypoint} has no schema of its task data",
            place=Place(str(folder)),
            hint=f"add a {TASK_DATA} there that exports a pydantic model or union as `TaskData`",
        )
    return folder / TASK_DATA


def _components(roots: Sequence[Path]) -> Iterator[str]:
    for root in roots:
        for kind in _KINDS:
            try:
                yield from (f"{kind}/{name}" for name in os.listdir(root / kind) if os.path.isdir(root / kind / name))
            except OSError:
                continue


@contextmanager
def _importable(roots: Sequence[Path]) -> Iterator[None]:
    """Components import each other by `resources_servers.<name>…` from any root, the first root first."""
    before = list(sys.path)
    sys.path[:0] = [str(root) for root in roots]
    try:
        yield
    finally:
        sys.path[:] = before


@contextmanager
def _registered(name: str, module: Any) -> Iterator[None]:
    """The module under its name while it runs: pydantic looks up annotations there."""
    present = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if present is None:
            del sys.modules[name]
        else:
            sys.modules[name] = present
