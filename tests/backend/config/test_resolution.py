from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from backend.config.errors import (
    AlmostServerError,
    ConfigError,
    ConfigInterpolationError,
    ConfigMissingValuesError,
    ConfigSyntaxError,
    InheritPathNotFoundError,
    MalformedConfigPathsError,
    ServerRefNotFoundError,
)
from backend.config.request import ConfigRequest, FlagValue
from backend.config.resolution import resolve_config
from tests.backend.config.riddle import OVERRIDES, RIDDLE

SERVER = "rs: {resources_servers: {quiz: {entrypoint: app.py, domain: games}}}\n"


def test_worked_example(write, request_for, tmp_path: Path) -> None:
    write(RIDDLE)
    resolved = resolve_config(request_for("hard.yaml", "endpoint.yaml", overrides=OVERRIDES))
    expected = {
        "limit": 4,
        "config_paths": ["hard.yaml", "endpoint.yaml", "riddle.yaml"],
        "hard_rs": {
            "resources_servers": {
                "riddle": {
                    "entrypoint": "app.py",
                    "domain": "games",
                    "grading": "cli",
                    "tags": ["z"],
                    "host": "127.0.0.1",
                    "port": None,
                }
            }
        },
        "hard_agent": {
            "responses_api_agents": {
                "simple_agent": {
                    "entrypoint": "app.py",
                    "max_steps": 9,
                    "resources_server": {"type": "resources_servers", "name": "hard_rs"},
                    "model_server": {"type": "responses_api_models", "name": "policy_model"},
                    "datasets": [{"name": "hard", "type": "example", "jsonl_fpath": "data/hard.jsonl"}],
                    "host": "127.0.0.1",
                    "port": None,
                }
            }
        },
        "policy_model": {"responses_api_models": {"openai_model": model("big", 18000)}},
        "judge_model": {"responses_api_models": {"openai_model": model("judge-1", 18001)}},
        "policy_base_url": "http://localhost:9/v1",
        "policy_api_key": "sk-local",
        "policy_model_name": "big",
        "use_absolute_ip": False,
        "port_range_low": 10001,
        "port_range_high": 20000,
        "head_server": {"host": "127.0.0.1", "port": 11000},
        "disallowed_ports": [11000, 18000, 18001],
        "allow_openai_version_skew": False,
        "head_server_deps": resolved.tree["head_server_deps"],
        "python_version": platform.python_version(),
        "skip_venv_if_present": False,
        "dry_run": False,
        "model_endpoint_readiness_timeout_seconds": 600,
        "results_dir": str(tmp_path / "results"),
        "cache_dir": str(tmp_path / "cache"),
        "uv_cache_dir": str(tmp_path / "cache/uv"),
        "uv_venv_dir": str(tmp_path),
    }
    assert resolved.tree == expected
    assert list(resolved.tree) == list(expected)
    assert [(server.name, server.kind, server.implementation, server.port) for server in resolved.servers] == [
        ("hard_rs", "resources_servers", "riddle", None),
        ("hard_agent", "responses_api_agents", "simple_agent", None),
        ("policy_model", "responses_api_models", "openai_model", 18000),
        ("judge_model", "responses_api_models", "openai_model", 18001),
    ]
    assert resolved.env_file == tmp_path / "env.yaml"
    assert resolved.warnings == ()
    assert resolved.redactor.tree(resolved.tree)["policy_api_key"] == "****"


def model(name: str, port: int) -> dict:
    return {
        "entrypoint": "app.py",
        "openai_base_url": "http://localhost:9/v1",
        "openai_api_key": "sk-local",
        "openai_model": name,
        "port": port,
        "host": "127.0.0.1",
    }


def test_chains_name_who_set_a_key_and_what_it_beat(write, request_for, tmp_path: Path) -> None:
    write(RIDDLE)
    resolved = resolve_config(request_for("hard.yaml", "endpoint.yaml", overrides=OVERRIDES))
    assert [(str(step.origin), step.value) for step in resolved.origins.chain("limit")] == [
        (f"{tmp_path}/riddle.yaml:10", 1),
        (f"{tmp_path}/hard.yaml:9", 2),
        (f"{tmp_path}/endpoint.yaml:5", 3),
        (f"{tmp_path}/env.yaml:4", 4),
    ]
    steps = resolved.origins.chain("hard_agent.responses_api_agents.simple_agent.max_steps")
    assert [(step.origin.kind, step.value) for step in steps] == [("file", 3), ("override", 9), ("directive", 9)]
    assert [step.value for step in resolved.origins.chain("policy_model_name")] == ["tiny", "big"]
    assert resolved.origins.chain("head_server.port")[0].origin.kind == "default"
    assert resolved.origins.chain("nothing.here") == ()
    assert resolved.origins.place("hard_rs.resources_servers.riddle.domain").line == 1
    assert dict(resolved.origins.items())["limit",][-1].value == 4
    assert resolved.get("hard_agent.responses_api_agents.simple_agent.datasets.0.name") == "hard"
    assert resolved.get("no.such", 7) == 7
    assert resolved.server("hard_rs").entrypoint == "app.py"
    assert resolved.server("riddle_rs") is None


def test_the_later_sibling_wins(write, request_for) -> None:
    write({"base.yaml": "judge: {grading_mode: strict}", "tuned.yaml": "judge: {grading_mode: lenient}"})
    resolved = resolve_config(request_for("base.yaml", "tuned.yaml"))
    assert resolved.get("judge.grading_mode") == "lenient"
    assert [step.value for step in resolved.origins.chain("judge.grading_mode")] == ["strict", "lenient"]


def test_config_paths_of_the_command_line_replace_those_of_env_yaml(write, request_for) -> None:
    write(
        {
            "a.yaml": "from: a",
            "b.yaml": "from: b",
            "env.yaml": "config_paths: [a.yaml]\nmine: [b.yaml]\nname: b",
        }
    )
    assert resolve_config(request_for()).get("from") == "a"
    for request in (
        request_for("b.yaml"),
        request_for(overrides=("+config_paths=[b.yaml]",)),
        request_for(overrides=("+config_paths=${mine}",)),
        request_for(overrides=("+config_paths=['${name}.yaml']",)),
        request_for(overrides=("++config_paths=[b.yaml]",)),
    ):
        assert resolve_config(request).tree["config_paths"] == ["b.yaml"]
    added = resolve_config(request_for("a.yaml", overrides=("+config_paths=[b.yaml]",)))
    assert added.tree["config_paths"] == ["a.yaml", "b.yaml"]
    replaced = resolve_config(request_for("a.yaml", overrides=("++config_paths=[b.yaml]",)))
    assert replaced.tree["config_paths"] == ["b.yaml"]
    assert "replaces the list of configurations" in replaced.warnings[0]
    with pytest.raises(MalformedConfigPathsError):
        resolve_config(request_for(overrides=("++config_paths=b.yaml",)))


def test_layers_in_order(write, request_for) -> None:
    write({"a.yaml": "k: file\nj: file\ni: file\nh: file", "env.yaml": "k: env\nj: env\ni: env"})
    request = request_for(
        "a.yaml",
        initial={"k": "initial", "j": "initial"},
        flag_values=(FlagValue("k", "flag", "--k"),),
        overrides=("++n=1",),
    )
    resolved = resolve_config(request)
    assert [resolved.get(key) for key in "kjihn"] == ["flag", "initial", "env", "file", 1]
    assert [step.origin.kind for step in resolved.origins.chain("k")] == ["file", "env_file", "initial", "flag"]
    assert resolve_config(request_for("a.yaml", read_env_file=False)).get("k") == "file"


def test_env_yaml_of_a_search_folder_shadows(write, request_for, tmp_path: Path) -> None:
    write({"env.yaml": "k: here", "extra/env.yaml": "k: extra", "other.yaml": "k: other"})
    resolved = resolve_config(request_for(search_dirs=("extra",)))
    assert (resolved.get("k"), resolved.env_file) == ("extra", tmp_path / "extra/env.yaml")
    assert resolve_config(request_for(env_file=Path("other.yaml"))).get("k") == "other"
    with pytest.raises(ConfigSyntaxError, match="does not exist"):
        resolve_config(request_for(env_file=Path("none.yaml")))


def test_typed_flags_and_files_agree(write, request_for) -> None:
    write({"a.yaml": "seed: 0"})
    assert resolve_config(request_for("a.yaml")).tree["seed"] == 0
    assert resolve_config(request_for(flag_values=(FlagValue("seed", 0, "--seed"),))).tree["seed"] == 0
    named = resolve_config(request_for(flag_values=(FlagValue("policy_model_name", "123456", "--model"),)))
    assert named.tree["policy_model_name"] == "123456"


@pytest.mark.parametrize(
    ("text", "error", "place", "part"),
    [
        ("foo: [1, 2\n", ConfigSyntaxError, "x.yaml:2:1", "malformed YAML"),
        ("x: ${ghost}\n", ConfigInterpolationError, "x.yaml:1:1", "references 'ghost', which is not set after merging"),
        ("x: ${y}\ny: ${x}\n", ConfigInterpolationError, "x.yaml:1:1", "Recursive interpolation"),
        ("x: ${oc.env:SURELY_NOT_SET}\n", ConfigInterpolationError, "x.yaml:1:1", "environment variable SURELY_NOT_SET"),
        ("x: 1\ny: ${oc.nope:1}\n", ConfigInterpolationError, "x.yaml:2:1", "Unsupported interpolation type"),
        ("x: 'a${'\n", ConfigInterpolationError, "x.yaml:1:1", "cannot be read"),
        ("a: 1\nx: {y: ['???']}\n", ConfigMissingValuesError, "x.yaml:2:9", "1 required config value(s) are unset"),
        ("x: {_inherit_from: y}\n", InheritPathNotFoundError, "x.yaml:1:5", "'y'"),
        (SERVER.replace("games", "gamez"), AlmostServerError, "x.yaml:1:53", "looks like a server"),
        (
            SERVER + "ag: {responses_api_agents: {s: {entrypoint: a.py, resources_server: {type: resources_servers, name: rz}}}}",
            ServerRefNotFoundError,
            "x.yaml:2:95",
            "In server instance 'ag', field 'resources_server' references resources_servers/'rz'",
        ),
        ("port_range_low: 9\nport_range_high: 8\n", ConfigError, "x.yaml:1:1", "above port_range_high"),
    ],
)
def test_errors_have_a_place(write, request_for, tmp_path: Path, text: str, error: type, place: str, part: str) -> None:
    write({"x.yaml": text})
    with pytest.raises(error) as caught:
        resolve_config(request_for("x.yaml"))
    assert part in caught.value.message
    assert str(caught.value.place).partition(" (")[0] == f"{tmp_path}/{place}"


def test_one_error_lists_the_others(write, request_for) -> None:
    write({"x.yaml": "a: ${ghost}\nb: ${phantom}\n" + SERVER.replace("games", "gamez")})
    with pytest.raises(ConfigInterpolationError, match="ghost") as caught:
        resolve_config(request_for("x.yaml"))
    assert [line.partition("x.yaml:")[2].partition(":")[0] for line in caught.value.details] == ["2", "3"]
    assert all(line.startswith("also: ") for line in caught.value.details)


def test_all_unset_values_are_listed(write, request_for) -> None:
    write({"x.yaml": "a: {b: '???'}\nl: [1, '???']\n"})
    with pytest.raises(ConfigMissingValuesError) as caught:
        resolve_config(request_for("x.yaml"))
    assert [line.split(" (")[0] for line in caught.value.details] == ["  - a.b", "  - l[1]"]
    assert caught.value.hint == "set them, for instance ++a.b=<value> ++l[1]=<value>"


def test_a_model_that_is_not_configured_is_one_message_with_the_flags(write, request_for) -> None:
    write({"endpoint.yaml": RIDDLE["endpoint.yaml"]})
    with pytest.raises(ConfigInterpolationError) as caught:
        resolve_config(request_for("endpoint.yaml"))
    assert caught.value.message == "no model is configured: policy_base_url, policy_api_key, policy_model_name are not set"
    for word in ("--model-url", "--model-api-key", "--model ", "env.yaml"):
        assert word in caught.value.hint
    assert len(caught.value.details) == 5  # judge_model has a model name of its own, but neither address nor key


def test_interpolations_deep_in_dead_data_are_remarked_only(write, request_for) -> None:
    write({"x.yaml": "notes: {deep: '${ghost}', ok: '${limit}'}\nlimit: 3\nmap: {a: 1}\nsame: ${map}\n"})
    resolved = resolve_config(request_for("x.yaml"))
    assert resolved.tree["notes"] == {"deep": "${ghost}", "ok": 3}
    assert resolved.tree["same"] == {"a": 1}
    assert "references 'ghost'" in resolved.warnings[0]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("", {"host": "127.0.0.1", "port": 11000}),
        ("head_server: {port: 12000}", {"port": 12000, "host": "127.0.0.1"}),
        ("head_server: {host: 0.0.0.0}", {"host": "0.0.0.0", "port": 11000}),
        ("default_host: 10.0.0.5", {"host": "10.0.0.5", "port": 11000}),
        ("head_server: null", {"host": "127.0.0.1", "port": 11000}),
    ],
)
def test_the_head_server_is_filled_field_by_field(write, request_for, text: str, head: dict) -> None:
    write({"x.yaml": text})
    assert resolve_config(request_for("x.yaml")).tree["head_server"] == head


def test_ports_are_explicit_or_open(write, request_for) -> None:
    block = "{resources_servers: {quiz: {entrypoint: app.py, domain: games, port: PORT}}}"
    for text, port in (("0", None), ("null", None), ("12345", 12345), ("'12345'", 12345)):
        write({"x.yaml": "rs: " + block.replace("PORT", text)})
        assert resolve_config(request_for("x.yaml")).servers[0].port == port


def test_two_servers_on_one_port(write, request_for) -> None:
    write(
        {
            "x.yaml": "".join(
                f"{name}: {{resources_servers: {{quiz: {{entrypoint: app.py, domain: games, port: 18000}}}}}}\n" for name in "ab"
            )
        }
    )
    with pytest.raises(ConfigError, match=r"'b' and 'a' .* both ask for port 18000"):
        resolve_config(request_for("x.yaml"))
    request = request_for("x.yaml", overrides=("++b.resources_servers.quiz.host=127.0.0.2",))
    assert [server.port for server in resolve_config(request).servers] == [18000, 18000]


def test_folders_are_absolute_and_home_is_expanded(write, request_for, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    write({"x.yaml": "results_dir: ~/out\ncache_dir: there\n"})
    tree = resolve_config(request_for("x.yaml")).tree
    assert (tree["results_dir"], tree["cache_dir"], tree["uv_cache_dir"]) == (
        "/home/someone/out",
        f"{tmp_path}/there",
        f"{tmp_path}/there/uv",
    )
    with pytest.raises(ConfigError, match="'results_dir' must be the path of a folder"):
        resolve_config(request_for(overrides=("+results_dir=[a]",)))


def test_verification_switches_reach_agents_that_lack_them(write, request_for) -> None:
    agent = "{responses_api_agents: {s: {entrypoint: a.py%s}}}"
    write({"x.yaml": f"a: {agent % ''}\nb: {agent % ', skip_verification: false'}\nskip_verification: true\n"})
    first, second = resolve_config(request_for("x.yaml")).servers
    assert (first.block["skip_verification"], second.block["skip_verification"]) == (True, False)
    assert "skip_verification_reward" not in first.block


def test_two_types_in_one_block_are_a_server_of_the_first_valid_type(write, request_for) -> None:
    write(
        {
            "x.yaml": "both: {responses_api_agents: {s: {entrypoint: a.py}}, resources_servers: {quiz: {entrypoint: app.py, domain: games}}}"
        }
    )
    (server,) = resolve_config(request_for("x.yaml")).servers
    assert (server.kind, server.implementation) == ("resources_servers", "quiz")


def test_the_type_key_need_not_come_first(write, request_for) -> None:
    write({"x.yaml": "rs: {note: hi, resources_servers: {quiz: {entrypoint: app.py, domain: games}}}"})
    assert resolve_config(request_for("x.yaml")).servers[0].implementation == "quiz"


def test_implementation_folders_must_exist(write, request_for, tmp_path: Path) -> None:
    write({"x.yaml": SERVER, "resources_servers/quizz/app.py": ""})
    with pytest.raises(ConfigError, match="there is no implementation 'quiz'") as caught:
        resolve_config(request_for("x.yaml", check_components=True))
    assert caught.value.hint == "Did you mean `quizz`?"
    write({"resources_servers/quiz/other.py": ""})
    with pytest.raises(ConfigError, match=r"the entrypoint .*/quiz/app.py does not exist"):
        resolve_config(request_for("x.yaml", check_components=True))
    write({"resources_servers/quiz/app.py": ""})
    assert resolve_config(request_for("x.yaml", check_components=True)).servers[0].name == "rs"


def test_stand_in_for_the_model(write, request_for) -> None:
    write(RIDDLE)
    resolved = resolve_config(request_for("riddle.yaml", stand_in_model=True))
    assert resolved.server("policy_model").implementation == "dummy_model"
    assert resolved.tree["policy_api_key"] == ""
    covered = resolve_config(
        request_for("riddle.yaml", "endpoint.yaml", stand_in_model=True, overrides=("++policy_model_name=big",))
    )
    assert covered.server("policy_model").implementation == "openai_model"
    assert covered.server("policy_model").block["openai_model"] == "big"
    assert covered.server("policy_model").block["openai_base_url"] == ""
    write(
        {
            "heir.yaml": "other: {responses_api_models: {openai_model: {entrypoint: app.py, x: 1}}}\npolicy_model: {_inherit_from: other}\n"
        }
    )
    heir = resolve_config(request_for("heir.yaml", stand_in_model=True))
    assert heir.server("policy_model").block["x"] == 1
    assert heir.server("policy_model").implementation == "openai_model"


def test_new_keys_on_inheriting_blocks_by_override(write, request_for) -> None:
    write(RIDDLE)
    resolved = resolve_config(
        request_for("hard.yaml", "endpoint.yaml", overrides=("++hard_agent.responses_api_agents.simple_agent.brand_new=1",))
    )
    assert resolved.get("hard_agent.responses_api_agents.simple_agent.brand_new") == 1


def test_hydra_run_dir_is_accepted_and_kept_apart(request_for) -> None:
    resolved = resolve_config(request_for(overrides=("hydra.run.dir='/tmp/some where'",)))
    assert resolved.hydra == {"hydra.run.dir": "/tmp/some where"}
    assert "hydra" not in resolved.tree


def test_the_redactor_knows_secrets_of_every_layer(write, request_for) -> None:
    write({"env.yaml": "policy_api_key: sk-env-secret-1\n"})
    resolved = resolve_config(request_for(overrides=("++policy_api_key=sk-cli-secret-2",)))
    assert resolved.redactor.text("sk-env-secret-1 sk-cli-secret-2") == "**** ****"
    assert "sk-cli-secret-2" not in "".join(str(step.origin) for step in resolved.origins.chain("policy_api_key"))


def test_plain_configurations_need_neither_omegaconf_nor_hydra(write, tmp_path: Path) -> None:
    write({**RIDDLE, "go.py": ""})
    script = (
        "import sys; from pathlib import Path; from backend.config.request import ConfigRequest;"
        "from backend.config.resolution import resolve_config;"
        f"resolve_config(ConfigRequest(config_paths=('hard.yaml', 'endpoint.yaml'), cwd=Path({str(tmp_path)!r}),"
        f" overrides={OVERRIDES!r}, check_components=False));"
        "print([name for name in ('omegaconf', 'hydra', 'pydantic', 'fastapi', 'aiohttp', 'rich') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]"


def test_folders_of_a_user_that_there_is_not_are_plain_names(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("cache_dir: ~nobody-of-this-name/c\nresults_dir: ~nobody-of-this-name/r\n")
    tree = resolve_config(ConfigRequest(config_paths=("a.yaml",), cwd=tmp_path)).tree
    assert tree["cache_dir"] == str(tmp_path / "~nobody-of-this-name/c") and tree["uv_cache_dir"] == f"{tree['cache_dir']}/uv"
    assert tree["results_dir"] == str(tmp_path / "~nobody-of-this-name/r")
