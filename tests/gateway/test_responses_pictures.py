"""Pictures that a model has made, too large to go back: what is left of the answers they are in."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from tests.support.rig import Rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream import items

pytestmark = pytest.mark.asyncio(loop_scope="session")

PICTURE = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "A" * (MAX_INLINE_MEDIA_BYTES + 1),
}


async def said(talk: ItemTalk, body: dict[str, Any]) -> None:
    answered = await talk.post({"model": "gpt-5", **body})
    assert answered.status_code == 200, (answered.text, talk.upstream.refused)


async def test_behind_a_picture_that_is_left_out_with_its_thought_no_name_wants_that(
    one: Rig,
) -> None:
    talk = ItemTalk.of(one)
    answer = items.said("Here is your cat.")
    talk.upstream.reply(items.thought(), PICTURE, answer)
    await said(talk, {"input": "Draw a cat."})
    await said(talk, {"input": "Thanks."})
    assert talk.input[1] == {key: value for key, value in answer.items() if key != "id"}
    assert await talk.log() == "Draw a cat. Here is your cat. Thanks. reply 1: Thanks."


async def test_who_names_all_of_such_an_answer_has_it_stored_once(one: Rig) -> None:
    talk = ItemTalk.of(one)
    output = [items.thought(), PICTURE, items.said("Here is your cat.")]
    talk.upstream.reply(*output)
    await said(talk, {"input": "Draw a cat."})
    asked = [{"role": "user", "content": text} for text in ("Draw a cat.", "Thanks.")]
    await said(talk, {"input": [asked[0], *map(items.named, output), asked[1]]})
    assert [item["type"] for item in talk.input[1:-1]] == ["item_reference"] * 2 + ["message"]
    assert await talk.log() == "Draw a cat. Here is your cat. Thanks. reply 1: Thanks."


@pytest.mark.parametrize("stores", [True, False], ids=["stored", "not-stored"])
async def test_who_names_an_answer_that_is_a_picture_says_its_question_once(
    one: Rig, stores: bool
) -> None:
    talk = ItemTalk.of(one)
    output = [items.thought(), PICTURE]
    talk.upstream.reply(*output, store=stores)
    await said(talk, {"input": "Draw a cat."})
    asked = [{"role": "user", "content": text} for text in ("Draw a cat.", "Thanks.")]
    await said(talk, {"input": [asked[0], *map(items.named, output), asked[1]]})
    assert [item for item in talk.input if item.get("role") == "user"] == asked
    assert await talk.log() == "Draw a cat. [image_generation_call] Thanks. reply 1: Thanks."
