"""What is noted of a stack of servers while it runs, so that other commands on this machine find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackServer:
    """One server of a stack. `state` is `preparing`, `starting`, `ready` or `ended`; `code` its exit code (negative: a signal)."""

    name: str
    kind: str
    """`resources_servers`, `responses_api_agents`, `responses_api_models`, or `head_server`."""
    implementation: str
    url: str
    folder: str = ""
    log: str = ""
    """Path of its log file, empty when it has none."""
    environment: str = ""
    """Path of the virtual environment it runs in; empty for the program's own."""
    pid: int = 0
    state: str = "starting"
    code: int | None = None
    seconds: float | None = None
    """From the start of the stack until it answered."""
    uses: tuple[str, ...] = ()
    """Names of the servers that its configuration refers to."""
    entrypoint: str = ""
    phase: str = ""
    """The step of its start-up that it is in: `preparing` (its environment), `importing`, `setting up`, then `ready`."""
    phase_since: float = 0.0
    """Unix time at which that step began."""
    workers: int = 1
    """Processes that share its port, all below `pid` when there are several."""


@dataclass(frozen=True, slots=True)
class StackRecord:
    """One stack. `created` is the creation time of the process `pid` in Unix seconds, `mark` what no step of the clock changes about it."""

    id: str
    pid: int
    created: float
    started: float
    """Unix time."""
    command: tuple[str, ...]
    """The masked command line, for people."""
    folder: str
    """Where the command was started."""
    head_url: str
    state: str
    """`starting`, `ready` or `stopping`."""
    events: str
    """Path of the event file, empty when there is none."""
    servers: tuple[StackServer, ...]
    run: str = ""
    """Path of the run folder that the stack serves; empty for `gym env start`."""
    name: str = ""
    """What the stack is called on the command line (`gym env stop NAME`): the name of its first environment or benchmark."""
    machine: str = ""
    """Node name of the machine: a home folder may be shared by several, and process numbers mean something on one only."""
    mark: str = ""
    """What `process_identity.process_mark` gives for `pid`; empty where the system does not tell."""
    began: float = 0.0
    """The moment of `started` in seconds since the machine's start (`process_identity.boot_clock`)."""
