"""What a process keeps in mind of texts goes when they are erased or edited."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper

import httpx
import pytest

from proxy.learning.facts.statements import gist
from proxy.recall.lexicon.cues import Cues
from proxy.recall.query.question import read
from proxy.recall.query.words import Reading, analyse
from proxy.recall.standing.standing import StandingInstruction, is_standing
from tests.support.memory_api import SESSIONS, seed, talk

_HOLDS = (
    *(_lru_cache_wrapper, Cues, Reading, StandingInstruction),
    *(dict, list, tuple, set, frozenset),
)
"""What caches consist of."""


def in_mind(word: str) -> list[str]:
    """The texts with a word in them that any cache of the proxy's functions holds."""
    held: list[object] = list(_caches())
    found: list[str] = []
    seen: set[int] = set()
    while held:
        one = held.pop()
        if isinstance(one, str) and word in one:
            found.append(one)
        elif id(one) not in seen and isinstance(one, _HOLDS):
            held += gc.get_referents(one)
        seen.add(id(one))
    return found


def _caches() -> Iterator[object]:
    for name, module in list(sys.modules.items()):
        if name.startswith("proxy."):
            caches = (_lru_cache_wrapper, Cues)
            yield from (each for each in vars(module).values() if isinstance(each, caches))


def think_of(text: str) -> None:
    """What is done with a text that is said, asked for, and what is learned."""
    read(text, (text,), 0.0)
    analyse(text, 0.0)
    assert is_standing(text)
    gist(text)


@pytest.mark.parametrize("gone", ["person", "session", "message", "edited"])
async def test_what_was_read_of_an_erased_text_is_not_kept_in_mind(
    client: httpx.AsyncClient, gone: str
) -> None:
    word = "".join(("zq", "xwvu"))
    text = f"Always answer about {word}."
    await seed(client, "a", *talk(text, "Fine."), user="kai")
    messages = f"{SESSIONS}/a/messages"
    one = f"{messages}/{(await client.get(messages)).json()['data'][0]['id']}"
    think_of(text)
    assert len(in_mind(word)) > 5
    if gone == "edited":
        response = await client.patch(one, json={"content": "Something else."})
    else:
        where = {"person": "/memory/v1/users/kai", "session": f"{SESSIONS}/a", "message": one}
        response = await client.delete(where[gone])
    assert response.status_code == 200, response.text
    assert in_mind(word) == []
