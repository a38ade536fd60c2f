"""Spoken answers of chat completions: they go back by their id, and elsewhere by their words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk
from tests.support.upstream.answers import chat_completion, error_answer, json_answer
from tests.support.upstream.anthropic import blocks

pytestmark = pytest.mark.asyncio(loop_scope="session")

SPOKEN = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "The dentist is Vrba."}
BY_ID = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}


async def spoken(talk: Talk) -> None:
    """A question and the answer to it."""
    whole: dict[str, Any] = chat_completion("")
    whole["choices"][0]["message"] = {"role": "assistant", "content": None, "audio": SPOKEN}
    await talk.ask([{"role": "user", "content": "u1"}], json_answer(whole))


async def test_they_go_back_by_their_id(every: Rig) -> None:
    talk = every.talk()
    await spoken(talk)
    await talk.ask([{"role": "user", "content": "u2"}])
    assert every.up.requests[-1].messages[1] == BY_ID


@pytest.mark.parametrize(
    "resent",
    [
        {"audio": {"id": "audio_1"}},
        {"content": None, "audio": SPOKEN},
        {"content": SPOKEN["transcript"]},
    ],
)
async def test_who_resends_one_is_understood(one: Rig, resent: dict[str, Any]) -> None:
    talk = one.talk()
    await spoken(talk)
    said = [{"role": "user", "content": "u1"}, {"role": "assistant", **resent}]
    await talk.ask([*said, {"role": "user", "content": "u2"}])
    assert one.up.requests[-1].messages[1] == {"role": "assistant", **resent}
    assert len(one.up.requests[-1].messages) == 3
    assert len(await talk.bodies()) == 4
    assert not await talk.gone()


async def test_one_that_the_upstream_has_no_more_is_told_by_its_words(one: Rig) -> None:
    talk = one.talk()
    await spoken(talk)
    gone = error_answer(400, "Audio with id audio_1 has expired.")
    fine = json_answer(chat_completion("a2"))
    one.up.always(lambda request: gone if "audio_1" in json.dumps(request.json) else fine)
    later = await talk.ask([{"role": "user", "content": "u2"}])
    assert (later.status_code, later.headers["x-memory-reason"]) == (200, "media_refused")
    told = {"role": "assistant", "content": SPOKEN["transcript"]}
    assert one.up.requests[-1].messages[1] == told


async def test_other_apis_have_their_words(one: Rig) -> None:
    talk = one.talk()
    await spoken(talk)
    items = ItemTalk.of(one)
    items.session = talk.session
    await items.post({"model": "gpt-5", "input": "u2"})
    assert items.input[1] == {"role": "assistant", "content": SPOKEN["transcript"]}
    one.up.always(None)
    messages = MessagesTalk.on(one, talk.session)
    await messages.ask([{"role": "user", "content": "u3"}])
    assert blocks(one.up.requests[-1].messages[1])[0]["text"] == SPOKEN["transcript"]
