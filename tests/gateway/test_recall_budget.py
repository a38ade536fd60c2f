"""How much recall puts into a prompt: never more than every bound on it allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.chat.models.tokens import Tokenizers
from tests.support.rig import KEY, Rig, rig
from tests.support.talk.recalling import blocks_in, user_said, with_memories
from tests.support.upstream.answers import chat_completion, error_answer, json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT = Tokenizers().counter_for("scripted-1").count
AUTHORIZED = {"authorization": f"Bearer {KEY}"}
TOO_LONG = error_answer(400, "maximum context length is 100 tokens", "context_length_exceeded")


@pytest.fixture
def one(remembering: Rig) -> Rig:
    """A proxy on SQLite that knows these profiles, with nothing scripted."""
    remembering.reset()
    return remembering


@pytest.mark.parametrize("profile", ["", "apart"])
async def test_the_bound_of_a_request_holds_recall_and_window_together(
    one: Rig, profile: str
) -> None:
    chosen = {"x-memory-profile": profile} if profile else {}
    person, word = await with_memories(one, **chosen)
    talk = await person.tells("I had soup.", "And bread.")
    sizes = []
    for bound in range(0, 400, 7):
        asked = f"And {word}?"
        response = await person.says(
            talk, asked, x_memory_max_tokens=str(bound), x_memory_mode="read"
        )
        told = int(response.headers["x-memory-tokens"])
        sent = one.up.requests[-1].messages
        really = sum(map(COUNT, sent)) - COUNT(user_said(asked))
        assert really <= told <= bound, (bound, told, really)
        sizes.append(int(response.headers["x-memory-recalled"]))
    assert sizes[0] == 0 and sizes[-1] > 2


async def test_recall_keeps_to_its_own_budget(one: Rig) -> None:
    person, word = await with_memories(one)
    small = await person.says(person.talk(), f"And {word}?", x_memory_profile="little")
    large = await person.says(person.talk(), f"And {word}?")
    assert 0 < int(small.headers["x-memory-tokens"]) <= 120 < int(large.headers["x-memory-tokens"])


async def test_recall_is_fitted_to_a_known_models_window(one: Rig) -> None:
    """gpt-4 takes 8,192 tokens: prompt and answer together."""
    person, word = await with_memories(one)
    question = f"And {word}? " + "the " * 6000
    free = await person.says(person.talk(), question, model="gpt-4", max_tokens=1000)
    tight = await person.says(person.talk(), question, model="gpt-4", max_tokens=2030)
    none = await person.says(person.talk(), question, model="gpt-4", max_tokens=2191)
    counts = [int(x.headers["x-memory-tokens"]) for x in (free, tight, none)]
    assert counts[0] > counts[1] > counts[2] == 0
    assert counts[1] <= 8192 - 2030 - 6000


async def test_a_prompt_that_is_too_long_is_sent_with_half_the_recall_then_with_none(
    one: Rig,
) -> None:
    person, word = await with_memories(one)
    one.up.reply(TOO_LONG, TOO_LONG)
    asked = [user_said(f"And {word}?")]
    response = await person.talk().ask(asked, json_answer(chat_completion("ok")))
    whole, half, none = (request.messages for request in one.up.requests[-3:])
    assert COUNT(whole[0]) > COUNT(half[0]) > COUNT(none[0])
    assert COUNT(half[0]) - COUNT(none[0]) <= (COUNT(whole[0]) - COUNT(none[0])) // 2
    assert none == asked
    assert response.headers["x-memory-status"] == "empty"
    assert response.headers["x-memory-recalled"] == response.headers["x-memory-tokens"] == "0"
    assert response.headers["x-memory-reason"] == "context_trimmed"


@pytest.mark.parametrize("window", ["token_window", "message_window", "all", "none"])
async def test_what_is_beside_a_window_has_max_tokens_together(window: str, tmp_path: Path) -> None:
    learned = {"enabled": True, "after_turns": 100}
    memory = {"window": window, "max_tokens": 200, "facts": learned, "recall": {"timeout": 5}}
    async with rig(tmp_path, memory=memory) as small:
        person, word = await with_memories(small)
        for number in range(25):
            fact = {"text": f"Kai owns house {number} in the street of the {number} lindens."}
            path = f"/memory/v1/users/{person.user}/memories"
            added = await small.client.post(path, json=fact, headers=AUTHORIZED)
            assert added.status_code == 201, added.text
        response = await person.says(person.talk(), f"Which house is Kai's? And {word}?")
        told = int(response.headers["x-memory-tokens"])
        assert told <= 200 and "facts" in blocks_in(small.up.requests[-1].messages)
