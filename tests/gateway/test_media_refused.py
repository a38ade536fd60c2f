"""What is stored and no text may be refused later: a link that has expired, a file that is gone, a
model that sees nothing, a part that another upstream has made.  The chat goes on in words."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.rig import Rig
from tests.support.talk.messaging import MessagesTalk
from tests.support.talk.responding import ItemTalk
from tests.support.talk.words import answer, messages
from tests.support.upstream import items
from tests.support.upstream.answers import Script, chat_completion, error_answer, json_answer
from tests.support.upstream.anthropic import answered, text
from tests.support.upstream.connection import Request

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINK = {"type": "image_url", "image_url": {"url": "https://pictures/cat.png?until=now"}}
FILE = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
CODE = "context_length_exceeded"
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {}}


def without(mark: str, refusal: Script, said: Script) -> Callable[[Request], Script]:
    """An upstream that refuses all that has this in it."""
    return lambda request: refusal if mark in json.dumps(request.json) else said


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "Error while downloading https://pictures/cat.png."),
        (404, "No endpoints found that support image input"),
        (422, "unknown variant `image_url`, expected `text`"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (500, "this model is missing data required for image input"),
    ],
)
async def test_a_picture_that_is_refused_later_is_told_in_words(
    one: Rig, status: int, error: str
) -> None:
    talk = one.talk()
    asked = [{"type": "text", "text": "u1"}, LINK]
    await talk.ask([{"role": "user", "content": asked}], json_answer(chat_completion("a1")))
    refusal = error_answer(status, error)
    one.up.always(without('"image_url": {', refusal, json_answer(chat_completion("a2"))))
    later = await talk.ask([{"role": "user", "content": "u2"}])
    assert (later.status_code, later.headers["x-memory-reason"]) == (200, "media_refused")
    told = one.up.requests[-1].messages[0]["content"]
    assert [part["type"] for part in told] == ["text", "text"]
    assert told[0]["text"] == "u1" and told[1]["text"].startswith("[image_url, ")
    assert (await talk.bodies())[0]["content"] == asked


async def test_a_picture_of_the_clients_is_the_clients_to_answer_for(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    one.up.always(error_answer(400, "Error while downloading."))
    before = len(one.up.requests)
    refused = await talk.ask([{"role": "user", "content": [LINK]}])
    assert refused.status_code == 400
    assert len(one.up.requests) == before + 1


async def test_it_is_asked_once_more_and_not_again(one: Rig) -> None:
    talk = one.talk()
    asked = {"role": "user", "content": [LINK]}
    await talk.ask([asked], json_answer(chat_completion("a1")))
    one.up.always(error_answer(400, "No."))
    before = len(one.up.requests)
    assert (await talk.ask([{"role": "user", "content": "u2"}])).status_code == 400
    assert len(one.up.requests) == before + 2


async def test_what_is_too_long_in_words_too_is_passed_on(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    await talk.ask([{"role": "user", "content": [LINK]}], answer("a2(c1)"))
    refusal, said = error_answer(400, "too long", CODE), json_answer(chat_completion("a3"))
    end = len(one.up.requests) + 20
    one.up.always(lambda _: refusal if len(one.up.requests) < end else said)
    assert (await talk.ask(messages("t1:c1"))).status_code == 400
    sent = [request.messages for request in one.up.requests[2:]]
    assert [len(each) for each in sent] == [5, 3, 3]
    assert ["https" in json.dumps(each) for each in sent] == [True, True, False]


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_an_error_that_is_for_something_else_is_passed_on(one: Rig, status: int) -> None:
    talk = one.talk()
    asked = {"role": "user", "content": [LINK]}
    await talk.ask([asked], json_answer(chat_completion("a1")))
    one.up.always(error_answer(status, "Not now."))
    before = len(one.up.requests)
    assert (await talk.ask([{"role": "user", "content": "u2"}])).status_code == status
    assert len(one.up.requests) == before + 1


async def test_a_file_that_needs_a_beta_is_told_in_words_without_it(one: Rig) -> None:
    one.up.strict = False
    talk = MessagesTalk.on(one)
    await talk.ask([{"role": "user", "content": [text("u1"), FILE]}], answered(text("a1")))
    refusal = error_answer(400, "messages.0.content.1.document.source: Input tag 'file' found")
    one.up.always(without("file_1", refusal, answered(text("a2"))))
    later = await talk.ask([{"role": "user", "content": "u2"}])
    assert (later.status_code, later.headers["x-memory-reason"]) == (200, "media_refused")
    told = one.up.requests[-1].messages[0]["content"]
    assert [block["type"] for block in told] == ["text", "text"]


async def test_what_another_upstream_did_by_itself_is_left_to_its_words(one: Rig) -> None:
    talk = ItemTalk.of(one)
    talk.upstream.reply(SEARCH, items.said("a1"))
    await talk.post({"model": "gpt-5", "input": "u1"})
    refusal = error_answer(422, "Input should be a valid item")
    said = json_answer(items.response([items.said("a2")]))
    one.up.always(without("web_search_call", refusal, said))
    later = await talk.post({"model": "other", "input": "u2"})
    assert (later.status_code, later.headers["x-memory-reason"]) == (200, "media_refused")
    assert (talk.sent, await talk.log()) == ("u1 a1 u2", "u1 a1 u2 a2")
