"""What the catalogue says about a component: values that commands print and screens draw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backend.catalog.kinds import KINDS, ComponentKind
from backend.config.schema import AGENTS, MODELS, RESOURCES
from backend.errors import Place

READY = "ready"
NO_DATA = "no data"
BROKEN = "broken"
STATES = (READY, NO_DATA, BROKEN)

EXPERIMENTAL = "experimental"
NO_MANIFEST = "no-manifest"


@dataclass(frozen=True, slots=True)
class Server:
    """A server instance that a configuration declares."""

    instance: str
    type: str
    """`resources_servers`, `responses_api_agents` or `responses_api_models`."""
    implementation: str
    resources_server: str | None = None
    """Of an agent: the instance it gets its tasks judged by."""
    model_server: str | None = None
    """Of an agent: the model instance it talks to."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set that a configuration declares."""

    name: str
    type: str
    declared_by: str
    """The server instance; `declared_by_type` is its type."""
    declared_by_type: str
    path: str | None
    """As written."""
    file: Path | None = None
    """Where that is found in the roots; None where it is missing."""
    prepare_script: str | None = None
    prompt_config: str | None = None
    num_repeats: int | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a configuration file itself declares, without what it includes or inherits. Each name once."""

    resources_servers: tuple[str, ...] = ()
    """Implementations."""
    agents: tuple[str, ...] = ()
    """Implementations."""
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The shown fields of a `manifest.yaml`."""

    path: Path
    version: str
    integration_profile: str
    modality: str
    licensing: str
    lifecycle: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a component cannot be used as it is."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def place(self) -> Place:
        return Place(self.file, self.line, self.column)

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message}"


@dataclass(frozen=True, slots=True)
class EntryName:
    """A component of which only the name is known, read off the folders: what a screen shows while files are being read."""

    kind: str
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One component. Texts are None where nothing says."""

    kind: str
    """A key of `kinds.KINDS`."""
    name: str
    path: Path
    """Its configuration file, absolute; of an agent its folder."""
    root: Path
    """The search root it was found in."""
    folder: Path
    """The component's own folder."""
    flag: str | None
    """The selector flag that loads it; None where none does."""
    selector: str
    """The name to give with `flag`."""
    domain: str | None = None
    description: str | None = None
    value: str | None = None
    """What the configuration says the workload is good for."""
    manifest: Manifest | None = None
    variants: tuple[str, ...] = ()
    """Of an agent: the names of its configurations, by which `--agent-type NAME/VARIANT` finds them."""
    self_contained: bool | None = None
    """Of an agent: whether it judges its tasks itself. None for other kinds."""
    servers: tuple[Server, ...] = ()
    """All instances of the composed configuration, in its order."""
    datasets: tuple[Dataset, ...] = ()
    written: Written = Written()
    configs: tuple[Path, ...] = ()
    """The files of the composed configuration, in the order in which they merge."""
    unset: tuple[str, ...] = ()
    """Keys that the composed configuration leaves for others to set: `???`, and interpolations of keys it does not have."""
    readme: Path | None = None
    shadowed: tuple[Path, ...] = ()
    """Components of the same name in later roots, hidden by this one."""
    broken: Broken | None = None

    @property
    def described_kind(self) -> ComponentKind:
        return KINDS[self.kind]

    @property
    def status(self) -> str:
        """The documented status of a workload: `experimental` with a manifest, else `no-manifest`."""
        return EXPERIMENTAL if self.manifest is not None else NO_MANIFEST

    @property
    def state(self) -> str:
        """One of `STATES`. A benchmark has data when its benchmark data set is there, anything else when one of its data sets is."""
        if self.broken is not None:
            return BROKEN
        wanted = [dataset for dataset in self.datasets if self.kind != "benchmark" or dataset.type == "benchmark"]
        return NO_DATA if wanted and all(dataset.file is None for dataset in wanted) else READY

    @property
    def agents(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.type == AGENTS)

    @property
    def resources_servers(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.type == RESOURCES)

    @property
    def models(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.type == MODELS)

    @property
    def model_group(self) -> str:
        """The folder of the component: presets of one model server share it."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Entries sorted as their kind is listed, and remarks on what was left out or hidden."""

    entries: tuple[CatalogEntry, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """Something that has to be there before the component can run."""

    kind: str
    """`data`, `prompt`, `model` or `value`."""
    name: str
    """The path, server instance or configuration key that is missing."""
    message: str
    command: tuple[str, ...] | None = None
    """A command that brings it, if there is one."""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Details:
    """One entry and what a look at it alone tells."""

    entry: CatalogEntry
    facts: tuple[tuple[str, str], ...]
    """Label and value, as `gym list <kind> NAME` prints them; only what is known. Of a workload what its own file declares."""
    inherited: tuple[tuple[str, str], ...]
    """The same labels, where what the file includes and inherits makes another value of it."""
    needs: tuple[Need, ...]
    usage_example: str | None
