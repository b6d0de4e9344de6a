import httpx
import pytest

from backend.config.config_types import BaseServerConfig
from backend.errors import GymError
from backend.responses.schema import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
)
from backend.servers.model_call_capture import CaptureStore
from backend.servers.model_server import BaseResponsesAPIModelConfig, SimpleResponsesAPIModel
from backend.servers.server_utils import ServerClient
from backend.servers.token_id_capture import (
    CaptureContext,
    InMemoryLineageStore,
    TokenCaptureStore,
    TokenIdCaptureConfig,
    capture_tokens,
    current_capture_context,
    install_lineage_store,
    install_token_sink,
    make_token_store,
    reset_token_sink,
    resolve_parent,
    set_token_sink,
    token_id_capture_dirs_from_config,
    trajectories_for_rollout,
)
from tests.loopback import chat_answer, responses_answer, serving

PREFIX = "/ng-rollout/0-0/training-token-capture"


class TokenModel(SimpleResponsesAPIModel):
    """Writes the token 100 after a prompt of one token per word, prefixed by the parent's tokens."""

    config: BaseResponsesAPIModelConfig
    fails: bool = False
    without_tokens: bool = False

    def tokens(self):
        if self.fails:
            raise RuntimeError("no model")
        if self.without_tokens:
            return {}
        context = current_capture_context()
        before = (context.parent_tokens or []) if context else []
        return {"prompt_token_ids": [*before, 7], "generation_token_ids": [100], "generation_log_probs": [-1.0]}

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        answer = responses_answer("ok")
        answer["output"][0] |= self.tokens()
        body.input = "changed by the handler"
        return NeMoGymResponse.model_validate(answer)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        return NeMoGymChatCompletion.model_validate(chat_answer("ok", **self.tokens()))


def application(config, **fields):
    server = TokenModel(
        config=BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model"),
        server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), config),
        **fields,
    )
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    return app


def capturing(folder, **settings):
    return {"token_id_capture": {"enabled": True, "dir": str(folder), **settings}}


async def post(url, path, body):
    async with httpx.AsyncClient() as client:
        return await client.post(url + path, json=body)


@pytest.mark.parametrize("delta", [False, True])
async def test_calls_of_both_dialects_become_one_trajectory(tmp_path, delta):
    asked = [{"role": "user", "content": "q"}]
    async with serving(application(capturing(tmp_path, delta_records=delta))) as url:
        first = await post(url, f"{PREFIX}/v1/responses", {"input": asked})
        history = [*asked, *first.json()["output"], {"role": "user", "content": "n"}]
        second = await post(url, f"{PREFIX}/v1/responses", {"input": history, "stream": True})
        assert "response.completed" in second.text
        messages = [*asked, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "n"}]
        messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "m"}]
        await post(url, f"{PREFIX}/v1/chat/completions", {"messages": messages})
    entries = TokenCaptureStore(tmp_path).read_entries("0-0")
    assert [entry.parent_resolution for entry in entries] == ["root", "resolved", "resolved"]
    assert [entry.prompt_is_delta for entry in entries] == [False, delta, delta]
    built = trajectories_for_rollout("0-0", [tmp_path])
    prompts = [item["prompt_token_ids"] for item in built["rebuilt_response"]["output"]]
    assert prompts == [[7], [7, 100, 7], [7, 100, 7, 100, 7]]
    assert built["mask_sample"] is False


async def test_only_calls_below_the_prefix_are_captured_and_share_the_id_of_the_other_record(tmp_path):
    config = capturing(tmp_path) | {"observability_enabled": True, "model_call_capture_dir": str(tmp_path)}
    async with serving(application(config)) as url:
        for path in ("/v1/responses", "/ng-rollout/0-0/v1/responses", f"{PREFIX}/v1/responses"):
            assert (await post(url, path, {"input": "q"})).status_code == 200
    [entry] = TokenCaptureStore(tmp_path).read_entries("0-0")
    assert CaptureStore(tmp_path).read("0-0")[1]["model_call_id"] == entry.model_call_id


async def test_capture_never_fails_a_call_but_marks_the_rollout(tmp_path):
    async with serving(application(capturing(tmp_path), without_tokens=True)) as url:
        assert (await post(url, f"{PREFIX}/v1/responses", {"input": "q"})).status_code == 200
    assert TokenCaptureStore(tmp_path).is_incomplete("0-0")
    store = TokenCaptureStore(tmp_path / "frozen")
    store.freeze_now("0-0")
    async with serving(application(capturing(tmp_path / "frozen"))) as url:
        assert (await post(url, f"{PREFIX}/v1/responses", {"input": "q"})).status_code == 200
    assert store.is_incomplete("0-0")


async def test_a_failed_call_leaves_the_rollout_complete(tmp_path):
    async with serving(application(capturing(tmp_path), fails=True)) as url:
        assert (await post(url, f"{PREFIX}/v1/responses", {"input": "q"})).status_code == 500
    assert not TokenCaptureStore(tmp_path).freeze_now("0-0").incomplete


async def test_no_context_means_no_capture():
    await resolve_parent("q")
    await capture_tokens({"output": []})
    assert current_capture_context() is None


async def test_a_lineage_store_that_fails_leaves_the_parent_unresolved():
    class Failing(InMemoryLineageStore):
        async def resolve(self, rollout_id, request_items):
            raise OSError("gone")

    for store, reason in ((Failing(), "lookup_failed"), (None, "no_lineage_store")):
        context = CaptureContext("r", "c", token_sink=None, lineage_store=store)
        token = set_token_sink(context)
        await resolve_parent([{"role": "assistant", "content": "x"}])
        reset_token_sink(token)
        assert (context.parent_resolution.status, context.parent_resolution.reason) == ("unresolved", reason)
        assert context.parent_tokens is None


def test_the_parts_that_a_configuration_names(tmp_path):
    assert TokenIdCaptureConfig.from_global_config({}).build_sink() is None
    assert (make_token_store({}), token_id_capture_dirs_from_config({})) == (None, [])
    config = {"token_id_capture": {"enabled": True}, "model_call_capture_dir": str(tmp_path)}
    assert make_token_store(config).root == tmp_path
    assert token_id_capture_dirs_from_config(config) == [tmp_path]
    module = "backend.servers.token_id_capture.store:TokenCaptureStore"
    own = {"enabled": True, "sink": module, "sink_kwargs": {"root": str(tmp_path)}, "allow_unresolved_continuations": True}
    built = TokenIdCaptureConfig.from_global_config({"token_id_capture": own})
    assert (built.build_sink().root, built.build_lineage_store()) == (tmp_path, None)
    assert make_token_store({"token_id_capture": own}) is None


def test_installed_parts_come_first(tmp_path):
    sink, lineage = TokenCaptureStore(tmp_path), InMemoryLineageStore()
    install_token_sink(sink)
    install_lineage_store(lineage)
    try:
        config = TokenIdCaptureConfig.from_global_config(capturing(tmp_path / "other"))
        assert config.build_sink() is sink
        assert config.build_lineage_store() is lineage
    finally:
        install_token_sink(None)
        install_lineage_store(None)


@pytest.mark.parametrize(
    "block",
    [
        {"enabled": True},
        {"enabled": True, "dir": "relative"},
        {"enabled": True, "unknown": 1},
        {"enabled": True, "sink": "a:B"},
        {"enabled": "perhaps"},
    ],
)
def test_settings_that_cannot_work_are_an_error_at_the_start(block):
    with pytest.raises(GymError, match="token_id_capture"):
        application({"token_id_capture": block})
