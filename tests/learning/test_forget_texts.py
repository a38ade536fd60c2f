"""Of what was erased, nothing stays in the caches of texts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import _lru_cache_wrapper, partial
from types import ModuleType

import pytest

from proxy.learning.facts import days, statements
from proxy.memory_api.erasure.caches import CLEARED_AGAIN, forget_texts
from proxy.recall.query import question, words
from proxy.recall.ranking import select
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
    (select, "_split", partial(select._words_of, SAID), select._cached_words),
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
        forget_texts("tenant")
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
        forget_texts("another")
        reader = threading.Thread(target=read)
        reader.start()
        assert began.wait(PATIENCE)
        forget_texts("tenant")
        erased.set()
        reader.join()
        assert cache.cache_info().currsize
        await asyncio.sleep(CLEARED_AGAIN + 1)
        assert not cache.cache_info().currsize

    virtually(erasing())
