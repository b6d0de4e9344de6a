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
class Command:
    """A leaf of the tree. `module` has `run(parsed) -> int`; `takes_json` and `takes_search_dir` add those two flags."""

    path: tuple[str, ...]
    summary: str
    module: str
    flags: tuple[Flag, ...] = ()
    name_help: str | None = None
    """Help of an optional positional NAME; None when there is none."""
    takes_json: bool = False
    takes_search_dir: bool = False
    example: str = ""


GROUPS = {
    "list": "see which components there are",
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
    Flag(("--disable-aggregation",), "write no aggregate metrics", Kind.SWITCH, "disable_aggregation"),
    Flag(("--observe",), "record every model call beside the output", Kind.LOCAL_SWITCH),
    Flag(("--events",), "also append the run's events to this file", Kind.LOCAL, metavar="FILE"),
)

COMMANDS = (
    Command(
        ("list", "benchmarks"),
        "list benchmarks, or inspect one",
        "backend.cli.list_benchmarks",
        name_help="inspect this benchmark",
        takes_json=True,
        takes_search_dir=True,
        example="gym list benchmarks first_steps",
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
        ("eval", "run"),
        "start the servers, collect rollouts, score them",
        "backend.cli.eval_run",
        flags=EVAL_RUN_FLAGS,
        takes_search_dir=True,
        example="gym eval run --benchmark first_steps --model-type llama_cpp_model --output results/first_steps.jsonl --split benchmark",
    ),
)
