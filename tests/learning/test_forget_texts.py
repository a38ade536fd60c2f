"""Of what was erased, nothing stays in the caches of texts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import _lru_cache_wrapper, partial
from types import ModuleType

import pytest

from proxy.learning.facts import days, statements
from proxy.memory.archive import do_nothing
from proxy.memory_api.erasure.caches import CLEARED_AGAIN, TextCaches
from proxy.recall.query import question, words
from proxy.recall.standing import standing
from tests.support.virtual import virtually
from tests.support.waiting import PATIENCE

SAID = "I live in Paris since 2010. Always answer in French, please."

READING: list[tuple[ModuleType, str, Callable[[], object], _lru_cache_wrapper[object]]] = [
    (days, "time_mentions", partial(days.times_in, SAID), days.times_in),
    (statements, "_stems", partial(statements.may_be_from, "Paris", SAID), statements._stems_of),
    (words, "_plain", partial(words.words, SAID), words._cached_word),
    (
        question,
        "_content_words",
        partial(question._self_contained, SAID, 1, 0.0),
        words._cached_text,
    ),
    (standing, "own_texts", partial(standing.find_instructions, SAID), standing._find_cached),
]
"""A module, a function that reads a text with what it calls meanwhile, and where that is cached."""


@pytest.mark.parametrize(("module", "name", "read", "cache"), READING)
def test_what_was_said_is_forgotten(
    module: ModuleType, name: str, read: Callable[[], object], cache: _lru_cache_wrapper[object]
) -> None:
    async def erased() -> None:
        read()
        assert cache.cache_info().currsize
        TextCaches(do_nothing, do_nothing).forget("tenant")
        assert not cache.cache_info().currsize

    virtually(erased())


@pytest.mark.parametrize(("module", "name", "read", "cache"), READING)
def test_what_a_thread_was_reading_while_it_was_erased_is_forgotten_later(
    module: ModuleType,
    name: str,
    read: Callable[[], object],
    cache: _lru_cache_wrapper[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, erased = threading.Event(), threading.Event()
    original = getattr(module, name)

    def waiting(*arguments: object) -> object:
        began.set()
        assert erased.wait(PATIENCE)
        return original(*arguments)

    async def erasing() -> None:
        monkeypatch.setattr(module, name, waiting)
        caches = TextCaches(do_nothing, do_nothing)
        caches.forget("another")
        reader = threading.Thread(target=read)
        reader.start()
        assert began.wait(PATIENCE)
        caches.forget("tenant")
        erased.set()
        reader.join()
        assert cache.cache_info().currsize
        await asyncio.sleep(CLEARED_AGAIN + 1)
        assert not cache.cache_info().currsize

    virtually(erasing())


def test_many_erasures_of_a_tenant_clear_caches_once_more_after_the_last() -> None:
    cleared: list[tuple[str, float]] = []

    async def erasing() -> None:
        now = asyncio.get_running_loop().time
        caches = TextCaches(lambda tenant: cleared.append((tenant, now())), do_nothing)
        caches.forget("another")
        for _ in range(3):
            caches.forget("tenant")
            await asyncio.sleep(CLEARED_AGAIN / 3)
        await asyncio.sleep(2 * CLEARED_AGAIN)

    virtually(erasing())
    again = CLEARED_AGAIN * 5 / 3
    assert [time for tenant, time in cleared if tenant == "tenant"] == pytest.approx(
        [0, CLEARED_AGAIN / 3, CLEARED_AGAIN * 2 / 3, again]
    )
    assert [time for tenant, time in cleared if tenant == "another"] == [0, CLEARED_AGAIN]
