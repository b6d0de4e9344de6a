"""A fast OpenAI-compatible endpoint for measuring a client: canned answers, optional latency and faults.

Run:  python mock_endpoint.py --port 9911 [--latency 0.02] [--fail-every 0]
Serves /v1/models, /v1/chat/completions and /v1/responses. Every answer is "\\boxed{A}" with usage numbers.
Counts requests and the largest number in flight; GET /stats returns both.
"""

import argparse
import asyncio
import json

import uvicorn

STATS = {"requests": 0, "in_flight": 0, "max_in_flight": 0, "failed": 0}
ARGS = argparse.Namespace(latency=0.0, fail_every=0, text="The answer is \\boxed{A}")


def chat_body(model):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ARGS.text}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28},
    }


def responses_body(model):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": model,
        "status": "completed",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": ARGS.text, "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "output_tokens": 8,
            "total_tokens": 28,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


async def read_body(receive):
    chunks = []
    while True:
        event = await receive()
        chunks.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(chunks)


async def send_json(send, status, payload):
    body = json.dumps(payload).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            event = await receive()
            await send({"type": event["type"] + ".complete"})
            if event["type"] == "lifespan.shutdown":
                return None
    path = scope["path"]
    if path == "/stats":
        return await send_json(send, 200, STATS)
    if path.endswith("/models"):
        return await send_json(send, 200, {"object": "list", "data": [{"id": "mock", "object": "model"}]})
    body = await read_body(receive)
    STATS["requests"] += 1
    STATS["in_flight"] += 1
    STATS["max_in_flight"] = max(STATS["max_in_flight"], STATS["in_flight"])
    try:
        if ARGS.latency:
            await asyncio.sleep(ARGS.latency)
        if ARGS.fail_every and STATS["requests"] % ARGS.fail_every == 0:
            STATS["failed"] += 1
            return await send_json(send, 503, {"error": {"message": "overloaded", "type": "server_error"}})
        model = json.loads(body or b"{}").get("model", "mock")
        build = chat_body if path.endswith("/chat/completions") else responses_body
        await send_json(send, 200, build(model))
    finally:
        STATS["in_flight"] -= 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=9911)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--fail-every", type=int, default=0)
    parser.add_argument("--text", default=ARGS.text)
    ARGS = parser.parse_args()
    uvicorn.run(app, host="127.0.0.1", port=ARGS.port, log_level="warning", access_log=False)
