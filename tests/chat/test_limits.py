from __future__ import annotations

import asyncio
import json
import re
import threading

import pytest
from genai_prices.data_snapshot import get_snapshot

from proxy.chat.models import limits
from proxy.chat.models.limits import MIN_CONTEXT_WINDOW, ModelList, context_window, is_context_error
from tests.support.processes.program import ran


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4o-2024-08-06", 128_000),
        ("GPT-4o", 128_000),
        ("gpt-4", 8_192),
        ("openai/gpt-4o", 128_000),
        ("azure/gpt-4o", 128_000),
        ("claude-sonnet-4-5", 200_000),
        ("anthropic/claude-3.5-sonnet", 200_000),
    ],
)
def test_the_context_window_of_known_models_is_known(model: str, tokens: int) -> None:
    assert context_window(model, 10**9) == tokens


@pytest.mark.parametrize("model", [None, "", "my-own-model", "a/b", "/", "x" * 10_000])
def test_the_context_window_of_other_models_is_not_known(model: str | None) -> None:
    assert context_window(model, 10**9) is None


def test_of_a_name_without_end_the_beginning_is_remembered() -> None:
    limits._cached_window.cache_clear()
    for end in "abc":
        assert context_window("gpt-4o" + "o" * limits.MAX_NAME + end, 10**9) is None
    assert limits._cached_window.cache_info().currsize == 1


def test_what_any_model_takes_is_not_looked_up() -> None:
    looked = ran(
        "import sys; from proxy.chat.models.limits import MIN_CONTEXT_WINDOW, context_window as of;"
        "print(of('gpt-4', MIN_CONTEXT_WINDOW), 'genai_prices' in sys.modules);"
        "print(of('gpt-4', MIN_CONTEXT_WINDOW + 1), 'genai_prices' in sys.modules)"
    )
    assert looked.stdout.split() == ["None", "False", "8192", "True"]


def test_no_model_that_chats_takes_less() -> None:
    windows = [
        model.context_window
        for provider in get_snapshot().providers
        for model in provider.models
        if model.context_window and not re.search("embed|bge|guard|trio-spark", model.id)
    ]
    assert len(windows) > 1000 and min(windows) >= MIN_CONTEXT_WINDOW


def openai(message: str, code: object = None, kind: str = "invalid_request_error") -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()


TOO_LONG: dict[str, bytes] = {
    "OpenAI": openai(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9000 tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
    ),
    "OpenAI, newer": openai(
        "Your input exceeds the context window of this model. Please adjust your input.",
        "context_length_exceeded",
    ),
    "Azure": openai("x", "context_length_exceeded"),
    "Anthropic": b'{"type":"error","error":{"type":"invalid_request_error",'
    b'"message":"prompt is too long: 208310 tokens > 200000 maximum"}}',
    "Anthropic, with output": openai(
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"
    ),
    "Bedrock": b'{"message":"Input is too long for requested model."}',
    "Gemini": openai(
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."
    ),
    "Gemini, in a list": b'[{"error":{"code":400,"message":"The input token count exceeds the '
    b'maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]',
    "Groq": openai("Please reduce the length of the messages or completion."),
    "Mistral": b'{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, '
    b'too large for model with 32768 maximum context length","code":3051}',
    "Moonshot": openai("Invalid request: Your request exceeded model token limit: 8192"),
    "xAI": b'{"code":"x","error":"This model\'s maximum prompt length is 131072 but the request '
    b'contains 537812 tokens."}',
    "Cohere": b'{"message":"too many tokens: total number of tokens in the prompt cannot exceed"}',
    "OpenRouter": openai(
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "200000 tokens."
    ),
    "OpenRouter, wrapped": b'{"error":{"message":"Provider returned error","code":400,"metadata":'
    b'{"raw":"{\\"error\\":{\\"code\\":\\"context_length_exceeded\\"}}"}}}',
    "vLLM": b'{"object":"error","message":"This model\'s maximum context length is 4096 tokens. '
    b'However, you requested 5000 tokens","type":"BadRequestError","code":400}',
    "vLLM, engine": openai(
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096."
    ),
    "vLLM, no room": openai("max_tokens must be at least 1, got -904. (parameter=max_tokens)"),
    "SGLang": openai(
        "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
    ),
    "TGI": b'{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",'
    b'"error_type":"validation"}',
    "llama.cpp": b'{"error":{"code":400,"message":"the request exceeds the available context size, '
    b'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}',
    "LM Studio": openai(
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens"
    ),
    "Ollama": b'{"error":{"message":"input length exceeds the context length"}}',
    "Copilot": openai("prompt token count of 9 exceeds", "model_max_prompt_tokens_exceeded"),
    "DashScope": openai("Range of input length should be [1, 30720]"),
    "FastAPI": b'{"detail":"Prompt too long"}',
    "plain text": b"Error: context length exceeded",
}

OTHERWISE: dict[str, bytes] = {
    "an unknown model": openai("The model `x` does not exist", "model_not_found"),
    "a tool message without a call": openai("messages with role 'tool' must be a response to"),
    "max_tokens": openai("max_tokens is too large: 100000. This model supports at most 16384."),
    "no max_tokens": openai("max_tokens must be at least 1, got -1."),
    "a list of nothing": b"[]",
    "a long string": openai("Invalid 'user': string too long. Maximum length 64"),
    "an echoed request": b'{"detail":[{"msg":"field required","input":"prompt is too long"}]}',
    "a long image": openai("image exceeds 5 MB maximum"),
    "nothing": b"",
    "HTML": b"<html><h1>413 Request Entity Too Large</h1></html>",
}


@pytest.mark.parametrize("body", TOO_LONG.values(), ids=TOO_LONG)
@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_prompt_that_was_too_long_is_recognised(status: int, body: bytes) -> None:
    assert is_context_error(status, body)


@pytest.mark.parametrize("body", OTHERWISE.values(), ids=OTHERWISE)
def test_other_errors_are_not_taken_for_it(body: bytes) -> None:
    assert not is_context_error(400, body)


@pytest.mark.parametrize("status", [200, 401, 403, 404, 429])
def test_only_an_error_that_can_mean_it_is_looked_at(status: int) -> None:
    assert not is_context_error(status, TOO_LONG["OpenAI"])


def test_a_huge_or_deep_error_body_is_no_trouble() -> None:
    assert not is_context_error(400, b"x" * 10_000_000)
    assert not is_context_error(400, b"[" * 60_000)


async def test_the_list_is_loaded_once_and_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, go_on = list[threading.Thread](), threading.Event()

    def load() -> None:
        threads.append(threading.current_thread())
        assert go_on.wait(30)

    monkeypatch.setattr(limits, "_load_list", load)
    models = ModelList()
    await models.wait_loaded(MIN_CONTEXT_WINDOW)
    assert not threads
    waiting = [asyncio.create_task(models.wait_loaded(MIN_CONTEXT_WINDOW + 1)) for _ in range(3)]
    while not threads:
        await asyncio.sleep(0)  # the loop goes on meanwhile
    waiting[0].cancel()
    go_on.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        asyncio.CancelledError,
        type(None),
        type(None),
    ]
    await models.wait_loaded(MIN_CONTEXT_WINDOW + 1)
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
