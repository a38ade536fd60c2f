"""The client of an OpenAI-compatible /embeddings, and what it makes of every answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from proxy.recall.semantic import embedders as embeddings
from proxy.recall.semantic.embedders import EmbedderError, EmbedderRefused, RemoteEmbedder
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import Kind, open_upstream
from tests.support.upstream.answers import DROPPED, SILENT, Script, error_answer, json_answer
from tests.support.upstream.scripted import Request, ScriptedUpstream
from tests.support.waiting import PATIENCE


def vectors(*found: list[Any], **more: object) -> Script:
    data = [
        {"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(found)
    ]
    return json_answer({"object": "list", "data": data, "model": "m", **more})


@pytest.fixture
async def up() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as up:
        yield up


@pytest.fixture(params=["direct", "aiohttp", "httpx"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


async def embed(
    up: ScriptedUpstream,
    kind: Kind,
    *texts: str,
    dimensions: int = 0,
    key: str | None = "sk-1",
    timeout: float = PATIENCE,
) -> list[list[float]]:
    upstream = open_upstream(kind, UpstreamOptions(up.url))
    await upstream.open()
    try:
        found = await RemoteEmbedder(upstream, "m", dimensions, key, timeout).embed(texts)
        rows: list[list[float]] = found.tolist()
        return rows
    finally:
        assert upstream.exchanges == 0
        await upstream.close()


async def test_texts_become_vectors_in_one_request(up: ScriptedUpstream, kind: Kind) -> None:
    up.reply(vectors([1, 0.5], [-2, 1e-3]))
    assert await embed(up, kind, "a", "ü\n") == [[1, 0.5], [-2, pytest.approx(1e-3)]]
    (request,) = up.requests
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.json == {"model": "m", "input": ["a", "ü\n"]}
    headers = {name.lower(): value for name, value in request.headers}
    assert headers[b"authorization"] == b"Bearer sk-1"
    assert headers[b"content-type"] == b"application/json"


async def test_without_a_key_none_is_sent(up: ScriptedUpstream, kind: Kind) -> None:
    up.reply(vectors([1]))
    await embed(up, kind, "a", key=None)
    assert b"authorization" not in {name.lower() for name, _ in up.requests[0].headers}


async def test_dimensions_are_asked_for_and_must_come(up: ScriptedUpstream, kind: Kind) -> None:
    up.reply(vectors([1, 2]), vectors([1, 2, 3]))
    assert await embed(up, kind, "a", dimensions=2) == [[1, 2]]
    assert up.requests[0].json["dimensions"] == 2
    with pytest.raises(EmbedderError, match="3 dimensions, not 2"):
        await embed(up, kind, "a", dimensions=2)


async def test_vectors_belong_to_the_texts_that_their_index_names(
    up: ScriptedUpstream, kind: Kind
) -> None:
    data = [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]
    up.reply(json_answer({"data": data}))
    assert await embed(up, kind, "a", "b") == [[1], [2]]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(vectors([1]), id="too-few"),
        pytest.param(vectors([1], [1], [1]), id="too-many"),
        pytest.param(vectors([1], [1, 2]), id="not-all-of-one-length"),
        pytest.param(vectors([], []), id="without-dimensions"),
        pytest.param(vectors([1], ["x"]), id="no-numbers"),
        pytest.param(vectors([1], [None]), id="null"),
        pytest.param(vectors([1], [1e300]), id="too-large"),
        pytest.param(json_answer({"data": None}), id="no-list"),
        pytest.param(json_answer([]), id="no-object"),
        pytest.param(Script(pieces=(b"<html>",)), id="no-json"),
        pytest.param(Script(pieces=(b"",)), id="empty"),
        pytest.param(error_answer(503, "busy"), id="503"),
        pytest.param(error_answer(429, "slow down"), id="429"),
        pytest.param(json_answer({}, 302), id="a-redirect"),
        pytest.param(DROPPED, id="dropped"),
    ],
)
async def test_what_is_no_answer_is_an_error_for_now(
    up: ScriptedUpstream, kind: Kind, answer: Script
) -> None:
    up.always(answer)
    with pytest.raises(EmbedderError) as caught:
        await embed(up, kind, "a", "b")
    assert not isinstance(caught.value, EmbedderRefused)
    assert len(up.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_an_error_until_something_changes(
    up: ScriptedUpstream, kind: Kind, status: int
) -> None:
    up.always(error_answer(status, "secret detail"))
    with pytest.raises(EmbedderRefused) as caught:
        await embed(up, kind, "a")
    assert str(caught.value) == f"embeddings: refused with status {status}"


def refusing(bad: str, longest: int, status: int) -> Callable[[Request], Script]:
    """Answers of a model that takes no text with that in it, and none that is longer."""

    def answer(request: Request) -> Script:
        texts = request.json["input"]
        if any(bad in text or len(text) > longest for text in texts):
            return error_answer(status, "too long")
        return vectors(*([len(text), 1] for text in texts))

    return answer


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("place", [0, 3, 6])
async def test_a_text_that_is_refused_leaves_the_others_their_vectors(
    up: ScriptedUpstream, kind: Kind, place: int, status: int
) -> None:
    up.always(refusing("bad", 99, status))
    texts = [letter * 9 for letter in "abcdefg"]
    texts[place] = "bad"
    rows = await embed(up, kind, *texts)
    assert rows == [[0, 0] if at == place else [9, 1] for at in range(7)]
    assert len(up.requests) <= (10 if status == 500 else 9)


@pytest.mark.parametrize("status", [400, 413, 500])
async def test_of_a_text_that_is_too_long_the_beginning_counts(
    up: ScriptedUpstream, kind: Kind, status: int
) -> None:
    up.always(refusing("?", 512, status))
    assert await embed(up, kind, "a" * 2000, "b", "c" * 400) == [[500, 1], [1, 1], [400, 1]]


@pytest.mark.parametrize("status", [401, 500])
async def test_a_model_that_takes_nothing_by_then_leaves_no_text_without_a_vector(
    up: ScriptedUpstream, kind: Kind, status: int
) -> None:
    up.reply(error_answer(400, "no"), vectors([1, 1]))
    up.always(error_answer(status, "revoked"))
    with pytest.raises(EmbedderError, match=f"status {status}"):
        await embed(up, kind, *"abcdefgh")
    assert len(up.requests) <= 6


async def test_a_short_text_that_is_refused_is_not_sent_again(
    up: ScriptedUpstream, kind: Kind
) -> None:
    up.always(refusing("bad", 99, 400))
    assert await embed(up, kind, "bad") == [[0, 0]]
    assert [request.json["input"] for request in up.requests] == [["bad"], ["."], ["."]]


@pytest.mark.parametrize("texts", [["a"], ["a", "b"], [*"abcdefgh"]])
async def test_a_failure_that_is_over_at_once_costs_no_text_its_vector(
    up: ScriptedUpstream, kind: Kind, texts: list[str]
) -> None:
    up.reply(error_answer(500, "oops"))
    up.always(refusing("bad", 99, 400))
    assert await embed(up, kind, *texts) == [[1, 1]] * len(texts)
    assert [request.json["input"] for request in up.requests] == [texts, ["."], texts]


async def test_a_model_that_takes_nothing_is_asked_twice(up: ScriptedUpstream, kind: Kind) -> None:
    up.always(error_answer(500, "oops"))
    with pytest.raises(EmbedderError, match="status 500"):
        await embed(up, kind, *"abcdefgh")
    assert len(up.requests) == 2


async def test_silence_is_not_waited_for(up: ScriptedUpstream, kind: Kind) -> None:
    up.always(SILENT)
    with pytest.raises(EmbedderError, match="no answer in time"):
        await embed(up, kind, "a", timeout=0.05)


async def test_an_answer_of_any_size_is_not_read(
    up: ScriptedUpstream, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "LIMIT", 1000)
    up.always(vectors([0.123456789] * 1000))
    with pytest.raises(EmbedderError):
        await embed(up, kind, "a")
