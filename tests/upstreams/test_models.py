"""Lists of models: read, merged, and the context windows that they tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination
from proxy.upstreams.models import ListedModel, merged, read_models
from proxy.upstreams.windows import ContextWindows
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import open_upstream
from tests.support.upstream.scripted import SILENT, ScriptedUpstream
from tests.support.upstream.several import destination, lists
from tests.support.waiting import eventually

MANY = 1_000_000


def listed(*entries: object) -> bytes:
    return json.dumps({"object": "list", "data": entries}).encode()


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        pytest.param({"max_model_len": 32768}, 32768, id="vllm"),
        pytest.param({"context_length": 131072}, 131072, id="openrouter"),
        pytest.param(
            {"context_length": None, "top_provider": {"context_length": 65536}},
            65536,
            id="provider",
        ),
        pytest.param({"meta": {"n_ctx_train": 131072}}, 131072, id="llama.cpp"),
        pytest.param({"meta": {"n_ctx_train": 131072, "n_ctx": 4096}}, 4096, id="as-started"),
        pytest.param(
            {"max_context_length": 131072, "loaded_context_length": 8192}, 8192, id="lm-studio"
        ),
        pytest.param({"context_window": 8192}, 8192, id="groq"),
        pytest.param({"max_context_length": 32768}, 32768, id="mistral"),
        pytest.param({"max_input_tokens": 200000}, 200000, id="anthropic"),
        pytest.param({}, None, id="openai"),
        pytest.param({"context_length": True}, None, id="no-number"),
        pytest.param({"context_length": "8192"}, None, id="text"),
        pytest.param({"context_length": -1, "context_window": 10**12}, None, id="implausible"),
        pytest.param({"meta": [1], "top_provider": None}, None, id="other-shapes"),
    ],
)
def test_a_context_window_is_found_by_any_of_its_names(
    entry: dict[str, Any], tokens: int | None
) -> None:
    assert [each.window for each in read_models(listed({"id": "m", **entry})) or ()] == [tokens]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"data": {}}', b'{"data": 1}', b'{"data": [', b"\xff"],
)
def test_what_is_no_list_is_none(body: bytes) -> None:
    assert read_models(body) is None


def test_entries_without_an_id_are_no_models() -> None:
    found = read_models(listed({"id": "a"}, {"name": "b"}, {"id": 7}, "c", {"id": "d"}))
    assert [each.id for each in found or ()] == ["a", "d"]


def test_entries_keep_their_bytes_and_order_and_the_first_of_equal_ids_stays() -> None:
    one = read_models(b'{"data": [{"id":"b", "n": 1.0},{"id":"a"}]}')
    two = read_models(b'{"data": [{"id": "c"}, {"id": "a", "of": "two"}, {"id":"hidden"}]}')
    assert one is not None
    assert two is not None
    found = merged([(lambda id: True, one), (lambda id: id != "hidden", two)])
    assert found == b'{"object":"list","data":[{"id":"b", "n": 1.0},{"id":"a"},{"id": "c"}]}'


def test_a_window_is_what_the_upstream_of_the_model_says_else_what_is_known() -> None:
    windows = ContextWindows(Upstreams([destination("local", "gpt-4*"), destination("by-name")]))
    assert windows("", "gpt-4o", MANY) == 128000
    windows.learn("local", [ListedModel("gpt-4o", b"", 4096), ListedModel("other", b"", 5)])
    windows.learn("by-name", [ListedModel("gpt-4o", b"", 2048)])
    windows.learn("default", [ListedModel("gpt-5", b"", 1000), ListedModel("mine", b"", None)])
    assert windows("", "gpt-4o", MANY) == windows("local", "gpt-4o", MANY) == 4096
    assert windows("by-name", "gpt-4o", MANY) == 2048
    assert windows("default", "gpt-4o", MANY) == 128000
    assert windows("", "gpt-5", MANY) == 1000
    assert (
        windows("", "other", MANY) is windows("", "mine", MANY) is windows("", None, MANY) is None
    )


async def test_each_upstream_is_asked_for_its_models_with_its_own_key() -> None:
    async with ScriptedUpstream() as up, ScriptedUpstream() as silent:
        up.always(lists({"id": "m", "context_length": 4096}))
        silent.always(SILENT)
        clients = [open_upstream("direct", UpstreamOptions(each.url)) for each in (up, silent)]
        for client in clients:
            await client.open()
        windows = ContextWindows(
            Upstreams(
                [
                    Destination("silent", clients[1]),
                    Destination("up", clients[0], ("m",), key="sk-up"),
                ]
            )
        )

        async def known() -> bool:
            return windows("", "m", MANY) == 4096

        windows.open()
        try:
            await eventually(known)
        finally:
            await windows.close()
            for client in clients:
                await client.close()
        (request,) = up.requests
        assert (request.target, request.header("authorization")) == (b"/v1/models", "Bearer sk-up")
