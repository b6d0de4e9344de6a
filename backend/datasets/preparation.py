"""The preparation step of a run that starts its own servers: the declared datasets of one split become one file of rows.

Nothing is written but that file, beside the run's output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from backend.config.dataset_entries import dataset_problems, repeats_of
from backend.config.errors import ConfigError
from backend.config.schema import DATASET_TYPES, MODELS
from backend.datasets.own_input import has_own_input, prompt_conflict
from backend.datasets.server_blocks import server_blocks
from backend.errors import GymError, Place
from backend.io.files import replacing
from backend.io.json_codec import dumps_ascii
from backend.io.jsonl import read_jsonl
from backend.io.result_paths import ResultPaths
from backend.io.roots import resolve_path
from backend.io.row_keys import AGENT_REF, TASK_SOURCE

if TYPE_CHECKING:
    from backend.datasets.prompt import PromptConfig


class DatasetDeclarationError(ConfigError, ValueError):
    """A dataset is declared in a wrong way or place, or no dataset is declared at all."""


class DatasetFileError(ConfigError, FileNotFoundError):
    """The rows of a declared dataset are not there."""


class EmptyDatasetError(GymError, ValueError):
    """A dataset has no rows."""


@dataclass(frozen=True, slots=True)
class DatasetDeclaration:
    """One entry of a server's `datasets`."""

    instance: str
    """The server instance that declares it."""
    name: str
    type: str
    """`train`, `validation`, `example` or `benchmark`."""
    jsonl_fpath: str
    num_repeats: int = 1
    """How often each row is written."""
    prompt_config: str | None = None
    prepare_script: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedDataset:
    """The file that a run reads its rows from."""

    path: Path
    rows: int
    """Lines written, repeats included."""
    warnings: tuple[str, ...]
    _parts: tuple[tuple[int, int], ...]
    """The lines of each dataset, and its `num_repeats`."""

    def repeats(self, limit: int | None = None) -> int:
        """How many lines, of the first `limit` or of all, are there because of `num_repeats`."""
        left = self.rows if limit is None else limit
        repeats = 0
        for lines, num_repeats in self._parts:
            taken = min(lines, left)
            left -= taken
            repeats += taken - math.ceil(taken / num_repeats)
        return repeats


def all_declared_datasets(tree: Mapping[str, Any]) -> Iterator[DatasetDeclaration]:
    """The datasets that a resolved configuration declares, in its order; raises DatasetDeclarationError for a malformed one."""
    for server in server_blocks(tree):
        for index, entry in enumerate(server.fields.get("datasets") or ()):
            key = f"{server.key}.datasets[{index}]"
            if server.kind == MODELS:
                raise DatasetDeclarationError(
                    f"datasets cannot be declared on a model server, such as '{server.instance}'",
                    place=Place(key=key),
                    hint="declare it on the resources server that verifies it, or on a self-contained agent",
                )
            problems = [f"{'.'.join(path) or 'it'} {problem}" for path, problem in dataset_problems(entry)]
            if problems:
                raise DatasetDeclarationError(f"a dataset is declared wrongly: {'; '.join(problems)}", place=Place(key=key))
            yield DatasetDeclaration(
                instance=server.instance,
                name=entry["name"],
                type=entry["type"],
                jsonl_fpath=entry["jsonl_fpath"],
                num_repeats=repeats_of(entry),
                prompt_config=entry.get("prompt_config"),
                prepare_script=entry.get("prepare_script"),
            )


def declared_datasets(tree: Mapping[str, Any], split: str) -> list[DatasetDeclaration]:
    """The datasets of `split`, in the order of the configuration; raises DatasetDeclarationError when there is none."""
    everything = list(all_declared_datasets(tree))
    chosen = [declaration for declaration in everything if declaration.type == split]
    if chosen:
        return chosen
    kinds = [kind for kind in DATASET_TYPES if any(declaration.type == kind for declaration in everything)]
    if not kinds:
        raise DatasetDeclarationError(
            f"no dataset of the split '{split}' is declared, nor any other dataset",
            hint="load a configuration with `datasets`, or run your own rows with --no-serve --input FILE",
        )
    runnable = [kind for kind in kinds if kind != "example"]
    raise DatasetDeclarationError(
        f"no dataset of the split '{split}' is declared; the configuration declares: {', '.join(kinds)}",
        hint=f"choose --split {' or --split '.join(runnable)}"
        if runnable
        else "example rows are run with --no-serve --input FILE",
    )


def prepare_split(
    declarations: Sequence[DatasetDeclaration], split: str, paths: ResultPaths, roots: Sequence[Path]
) -> PreparedDataset:
    """Write the rows of the declarations, in their order, to the run's prepared file, in one step and row by row.

    Each row keeps its keys in their order, without `agent_ref`, and ends with `task_source`, the declaring instance; it is written
    `num_repeats` times in a row. A benchmark's prompt fills `responses_create_params.input`. Everything that is read is looked for
    in `roots`. Raises a GymError, and leaves an earlier file as it was, for rows that cannot be prepared.
    """
    target = paths.prepared_dataset(split)
    sources = [_source(declaration, roots) for declaration in declarations]
    parts: list[tuple[int, int]] = []
    warnings = []
    with replacing(target.absolute()) as output:
        for declaration, source in zip(declarations, sources, strict=True):
            written, with_agent = _write_dataset(declaration, source, roots, output)
            parts.append((written, declaration.num_repeats))
            if with_agent:
                warnings.append(
                    f"{source}: agent_ref was dropped from {with_agent} row(s); "
                    "rows are routed by the instance that declares them, and agent_ref in datasets is deprecated"
                )
    return PreparedDataset(target, sum(lines for lines, _ in parts), tuple(warnings), tuple(parts))


def _write_dataset(declaration: DatasetDeclaration, source: Path, roots: Sequence[Path], output: BinaryIO) -> tuple[int, int]:
    """How many lines were written, and how many rows had an agent_ref."""
    prompt = _prompt(declaration, roots)
    with_agent = count = 0
    conflicts: list[int] = []
    for count, line in enumerate(read_jsonl(source), 1):
        row = line.value
        if prompt is not None:
            if has_own_input(row):
                conflicts.append(count - 1)
                continue
            from backend.datasets.prompt import apply_prompt_to_row

            row = apply_prompt_to_row(row, prompt, place=Place(str(source), line.number))
        with_agent += AGENT_REF in row
        kept = {key: value for key, value in row.items() if key not in (AGENT_REF, TASK_SOURCE)}
        output.write((dumps_ascii({**kept, TASK_SOURCE: declaration.instance}) + b"\n") * declaration.num_repeats)
    if conflicts:
        raise prompt_conflict(conflicts, place=Place(str(source)))
    if not count:
        raise EmptyDatasetError(
            f"the dataset '{declaration.name}' of '{declaration.instance}' has no rows",
            place=Place(str(source)),
            hint=_remedy(declaration),
        )
    return count * declaration.num_repeats, with_agent


def _prompt(declaration: DatasetDeclaration, roots: Sequence[Path]) -> PromptConfig | None:
    if declaration.type != "benchmark" or declaration.prompt_config is None:
        return None
    from backend.datasets.prompt import load_prompt_config

    return load_prompt_config(declaration.prompt_config, roots)


def _source(declaration: DatasetDeclaration, roots: Sequence[Path]) -> Path:
    source = resolve_path(declaration.jsonl_fpath, roots)
    if source.is_file():
        return source
    raise DatasetFileError(
        f"the {declaration.type} dataset '{declaration.name}' of '{declaration.instance}' is not there",
        place=Place(str(source)),
        hint=_remedy(declaration),
    )


def _remedy(declaration: DatasetDeclaration) -> str:
    if declaration.type == "benchmark" and declaration.prepare_script:
        return f"`prepare()` of {declaration.prepare_script} makes it"
    return "put the file there"
