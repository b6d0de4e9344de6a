"""The command tree as data: what there is, what it takes, and which module runs it.

Importing this imports nothing else, so that help and completion stay cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a flag's value becomes."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    """Present means true."""
    YAML = "yaml"
    """A number, or a mapping in the override grammar."""
    CONFIG_FILE = "config file"
    """Repeatable; joins `config_paths`."""
    SELECTOR = "selector"
    """A component name that stands for its config file; joins `config_paths`."""
    SEARCH_DIR = "search dir"
    LOCAL = "local"
    """Read by the command itself; no configuration key."""
    LOCAL_SWITCH = "local switch"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its names, the configuration key it sets, and how its value is read."""

    names: tuple[str, ...]
    help: str
    kind: Kind = Kind.TEXT
    key: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    repeatable: bool = False

    @property
    def destination(self) -> str:
        return self.names[0].lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Argument:
    """A word that a command cannot do without; `choices` are the words that it may be."""

    name: str
    help: str
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A leaf of the tree, below a group or, with one word in `path`, at the top.

    `module` has `run(parsed) -> int`; `takes_json` and `takes_search_dir` add those two flags.
    """

    path: tuple[str, ...]
    summary: str
    module: str
    flags: tuple[Flag, ...] = ()
    name_help: str | None = None
    """Help of an optional positional NAME; None when there is none."""
    name_metavar: str = "NAME"
    most_names: int = 1
    arguments: tuple[Argument, ...] = ()
    takes_json: bool = False
    takes_search_dir: bool = False
    takes_overrides: bool = True
    """Otherwise a word with `=` is an ordinary word."""
    example: str = ""


GROUPS = {
    "list": "see which components and runs there are",
    "env": "check configurations, start servers, see what runs",
    "eval": "run evaluations",
}

CONFIG = Flag(
    ("--config",), "load a configuration file; repeatable, later ones win", Kind.CONFIG_FILE, metavar="PATH", repeatable=True
)
BENCHMARK = Flag(("--benchmark",), "load a benchmark's configuration by name", Kind.SELECTOR, metavar="NAME", repeatable=True)
ENVIRONMENT = Flag(
    ("--environment",), "load an environment's configuration by name", Kind.SELECTOR, metavar="NAME", repeatable=True
)
RESOURCES_SERVER = Flag(
    ("--resources-server",), "load a resources server's configuration by name", Kind.SELECTOR, metavar="NAME", repeatable=True
)
MODEL_TYPE = Flag(("--model-type",), "load a model server's configuration by name", Kind.SELECTOR, metavar="NAME")
AGENT_TYPE = Flag(
    ("--agent-type",),
    "load an agent's configuration by name; it takes the place of the benchmark's agent",
    Kind.SELECTOR,
    metavar="NAME",
)
PAIRING = Flag(
    ("--allow-unsupported-pairing",),
    "allow an agent that the environment does not list",
    Kind.SWITCH,
    "allow_unsupported_pairing",
)
MODEL = Flag(
    ("--model", "-m"), "model identifier, or the path of a GGUF file for llama_cpp_model", Kind.TEXT, "policy_model_name"
)
MODEL_URL = Flag(("--model-url",), "base URL of the model endpoint", Kind.TEXT, "policy_base_url", metavar="URL")
MODEL_API_KEY = Flag(
    ("--model-api-key",), "key for the model endpoint; better kept in env.yaml", Kind.TEXT, "policy_api_key", metavar="KEY"
)
SEARCH_DIR = Flag(
    ("--search-dir",),
    "also look for components, configs and data below this folder; repeatable",
    Kind.SEARCH_DIR,
    metavar="DIR",
    repeatable=True,
)

SELECTORS = (CONFIG, BENCHMARK, ENVIRONMENT, RESOURCES_SERVER, MODEL_TYPE, AGENT_TYPE, PAIRING)
MODEL_FLAGS = (MODEL, MODEL_URL, MODEL_API_KEY)

EVAL_RUN_FLAGS = (
    CONFIG,
    BENCHMARK,
    ENVIRONMENT,
    RESOURCES_SERVER,
    MODEL_TYPE,
    Flag(("--no-serve",), "use servers that run already instead of starting them", Kind.LOCAL_SWITCH),
    AGENT_TYPE,
    PAIRING,
    Flag(("--agent", "-a"), "agent instance to collect rollouts with", Kind.TEXT, "agent_name", metavar="NAME"),
    Flag(("--input", "-i"), "JSON-lines file of tasks (with --no-serve)", Kind.TEXT, "input_jsonl_fpath", metavar="FILE"),
    Flag(
        ("--output", "-o"),
        "JSON-lines file for the rollouts; everything else is written beside it",
        Kind.TEXT,
        "output_jsonl_fpath",
        metavar="FILE",
    ),
    Flag(("--limit",), "only the first N rows", Kind.INTEGER, "limit", metavar="N"),
    Flag(
        ("--num-repeats",),
        "rollouts per task; a number, or counts per agent: '{a: 4, _default: 1}'",
        Kind.YAML,
        "num_repeats",
        metavar="N",
    ),
    Flag(("--prompt-config",), "prompt template to apply to every row", Kind.TEXT, "prompt_config", metavar="FILE"),
    Flag(("--concurrency",), "most rollouts in flight at once", Kind.INTEGER, "num_samples_in_parallel", metavar="N"),
    Flag(
        ("--split",),
        "which declared data sets to run",
        Kind.TEXT,
        "split",
        metavar="{train,validation,benchmark}",
        choices=("train", "validation", "benchmark", "example"),
    ),
    *MODEL_FLAGS,
    Flag(("--temperature",), "sampling temperature", Kind.NUMBER, "responses_create_params.temperature", metavar="T"),
    Flag(("--top-p",), "nucleus sampling", Kind.NUMBER, "responses_create_params.top_p", metavar="P"),
    Flag(
        ("--max-output-tokens",),
        "most tokens per model answer",
        Kind.INTEGER,
        "responses_create_params.max_output_tokens",
        metavar="N",
    ),
    Flag(
        ("--resume",), "go on with the run at --output: what is finished stays, the rest is run", Kind.SWITCH, "resume_from_cache"
    ),
    Flag(
        ("--accept-changed-settings",),
        "with --resume: go on although settings have changed, and record which",
        Kind.SWITCH,
        "accept_changed_settings",
    ),
    Flag(("--disable-aggregation",), "write no aggregate metrics", Kind.SWITCH, "disable_aggregation"),
    Flag(("--observe",), "record every model call beside the output", Kind.LOCAL_SWITCH),
    Flag(("--events",), "also append the run's events to this file", Kind.LOCAL, metavar="FILE"),
)

_LIST_COMPONENTS = "backend.cli.list_components"
CATALOG_FILTERS = (
    Flag(("--domain",), "only those of this domain", Kind.LOCAL),
    Flag(("--kind",), "only workloads of this kind", Kind.LOCAL, choices=("environment", "benchmark")),
    Flag(("--modality",), "only those of this modality", Kind.LOCAL),
    Flag(("--licensing",), "only those with this licence", Kind.LOCAL, metavar="LICENCE"),
    Flag(("--status",), "only those with or without a manifest", Kind.LOCAL, choices=("experimental", "no-manifest")),
    Flag(("--lifecycle",), "only those at this stage", Kind.LOCAL, choices=("active", "deprecated")),
)

COMMANDS = (
    Command(
        ("list", "benchmarks"),
        "list benchmarks, or inspect one",
        _LIST_COMPONENTS,
        name_help="inspect this benchmark",
        takes_json=True,
        takes_search_dir=True,
        example="gym list benchmarks first_steps",
    ),
    Command(
        ("list", "environments"),
        "list environments and benchmarks, or inspect one",
        _LIST_COMPONENTS,
        flags=CATALOG_FILTERS,
        name_help="inspect this environment or benchmark",
        takes_json=True,
        takes_search_dir=True,
        example="gym list environments --domain math",
    ),
    Command(
        ("list", "agents"),
        "list agents, or inspect one",
        _LIST_COMPONENTS,
        name_help="inspect this agent",
        takes_json=True,
        takes_search_dir=True,
        example="gym list agents simple_agent",
    ),
    Command(
        ("list", "models"),
        "list model servers, or inspect one",
        _LIST_COMPONENTS,
        name_help="inspect this model server",
        takes_json=True,
        takes_search_dir=True,
        example="gym list models openai_model",
    ),
    Command(
        ("list", "resources-servers"),
        "list resources servers, or inspect one",
        _LIST_COMPONENTS,
        name_help="inspect this resources server",
        takes_json=True,
        takes_search_dir=True,
        example="gym list resources-servers mcqa",
    ),
    Command(
        ("search",),
        "find components by name, domain or description",
        "backend.cli.search",
        name_help="what to look for; with a TYPE in front only among these: benchmarks, environments, agents, models, resources-servers",
        name_metavar="QUERY",
        most_names=2,
        takes_json=True,
        takes_search_dir=True,
        takes_overrides=False,
        example="gym search models vllm",
    ),
    Command(
        ("list", "runs"),
        "list runs with their states and scores, the newest first",
        "backend.cli.list_runs",
        flags=(
            Flag(
                ("--filter",),
                "only runs that match: state:died benchmark:NAME model:NAME score<0.5 failed>0 age<2h, or any word",
                Kind.LOCAL,
                metavar="QUERY",
            ),
            Flag(
                ("--sort",),
                "order of the list, by default age, the newest first",
                Kind.LOCAL,
                metavar="{age,score,name,…}",
                choices=("age", "score", "name", "failed", "state", "benchmark", "model", "scored", "missing"),
            ),
        ),
        name_help="look below this folder (by default the present one), or show this run",
        name_metavar="PATH",
        takes_json=True,
        example="gym list runs results --filter 'state:died'",
    ),
    Command(
        ("env", "resolve"),
        "print the configuration that files, flags and overrides make",
        "backend.cli.env_resolve",
        flags=(
            Flag(("--provenance",), "tell where each value comes from and what it beats", Kind.LOCAL_SWITCH),
            Flag(("--key",), "only keys that contain this, with their provenance", Kind.LOCAL, metavar="TEXT"),
            Flag(("--no-model",), "put a stand-in where no model is configured", Kind.LOCAL_SWITCH),
            *SELECTORS,
            *MODEL_FLAGS,
        ),
        takes_json=True,
        takes_search_dir=True,
        example="gym env resolve --benchmark first_steps --no-model --key grading_mode",
    ),
    Command(
        ("env", "diff"),
        "compare two configurations",
        "backend.cli.env_diff",
        arguments=(
            Argument("a", "a configuration file, a run's folder or run.json, or the quoted arguments of `gym env resolve`"),
            Argument("b", "the other one, in any of these forms"),
        ),
        takes_json=True,
        takes_search_dir=True,
        takes_overrides=False,
        example="gym env diff results/large_run '--benchmark first_steps --model-type llama_cpp_model ++limit=3'",
    ),
    Command(
        ("env", "schema"),
        "print the JSON Schema of a resources server's task data",
        "backend.cli.env_schema",
        flags=(Flag(("--resources-server",), "the server, by the name of its folder", Kind.LOCAL, metavar="NAME"),),
        takes_search_dir=True,
        example="gym env schema --resources-server example_multi_step",
    ),
    Command(
        ("env", "validate"),
        "check a configuration without starting anything",
        "backend.cli.env_validate",
        flags=(
            Flag(("--strict",), "fail on values that a run would still need", Kind.LOCAL_SWITCH),
            *SELECTORS,
            *MODEL_FLAGS,
        ),
        takes_json=True,
        takes_search_dir=True,
        example="gym env validate --resources-server mcqa --model-type openai_model --strict",
    ),
    Command(
        ("env", "start"),
        "start the servers of a configuration and watch them",
        "backend.cli.env_start",
        flags=(*SELECTORS, *MODEL_FLAGS, Flag(("--events",), "append events to this file", Kind.LOCAL, metavar="FILE")),
        takes_search_dir=True,
        example="gym env start --resources-server mcqa --model-type llama_cpp_model",
    ),
    Command(
        ("env", "status"),
        "show the servers that run, and whether they answer",
        "backend.cli.env_status",
        takes_json=True,
    ),
    Command(
        ("env", "prefetch"),
        "build the environments of a configuration's servers, without starting anything",
        "backend.cli.env_prefetch",
        flags=SELECTORS,
        takes_search_dir=True,
        example="gym env prefetch --resources-server mcqa --model-type openai_model",
    ),
    Command(
        ("env", "packages"),
        "list what is installed in a server's environment",
        "backend.cli.env_packages",
        flags=(
            Flag(("--resources-server",), "the server, by the name of its folder", Kind.LOCAL, metavar="NAME"),
            Flag(("--outdated",), "only packages of which there are newer versions", Kind.LOCAL_SWITCH),
        ),
        takes_json=True,
        takes_search_dir=True,
        example="gym env packages --resources-server mcqa --outdated",
    ),
    Command(
        ("env", "test"),
        "run the tests of a server, or of all, in their environments",
        "backend.cli.env_test",
        flags=(
            Flag(("--resources-server",), "the server, by the name of its folder", Kind.LOCAL, metavar="NAME"),
            Flag(("--all",), "every server, agent and model server that has a README.md", Kind.LOCAL_SWITCH),
        ),
        takes_search_dir=True,
        example="gym env test --resources-server mcqa",
    ),
    Command(
        ("env", "stop"),
        "stop the servers of a stack, and the command that started them",
        "backend.cli.env_stop",
        flags=(Flag(("--all",), "stop every stack on this machine", Kind.LOCAL_SWITCH),),
        name_help="the stack: its name, id or head port, or one of its servers; not needed when there is only one",
        takes_json=True,
        takes_overrides=False,
        example="gym env stop mcqa",
    ),
    Command(
        ("eval", "run"),
        "start the servers, collect rollouts, score them",
        "backend.cli.eval_run",
        flags=EVAL_RUN_FLAGS,
        takes_search_dir=True,
        example="gym eval run --benchmark first_steps --model-type llama_cpp_model --output results/first_steps.jsonl --split benchmark",
    ),
    Command(
        ("eval", "control"),
        "tell a run that is going on to come to an end",
        "backend.cli.eval_control",
        arguments=(
            Argument("run", "its rollouts file, its run folder, or the run.json in that"),
            Argument(
                "action",
                "drain: send nothing more and let what is in flight finish; cancel: give that up too. Metrics are written in both cases",
                choices=("drain", "cancel"),
            ),
        ),
        takes_json=True,
        example="gym eval control results/first_steps.jsonl drain",
    ),
    Command(
        ("tui",),
        "open the workbench, full screen",
        "gym_tui.command",
        flags=(
            Flag(("--screen",), "the screen to begin with", Kind.LOCAL, metavar="NAME"),
            Flag(("--theme",), "colours, by name; remembered when chosen in the workbench", Kind.LOCAL, metavar="NAME"),
            Flag(("--ascii",), "draw with ASCII characters only", Kind.LOCAL_SWITCH),
            Flag(("--no-mouse",), "leave the mouse to the terminal", Kind.LOCAL_SWITCH),
        ),
        name_help="a folder of runs, a run, or a file of rollouts; by default the working directory",
        name_metavar="PATH",
        takes_overrides=False,
        example="gym tui results/first_steps.jsonl",
    ),
)


def is_known(words: tuple[str, ...]) -> bool:
    """Whether the words of a command line, without the program, begin with a command that there is."""
    return any(words[: len(command.path)] == command.path for command in COMMANDS)
