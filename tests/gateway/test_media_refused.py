"""What is stored and no text may be refused later: a link that has expired, a file that is gone, a
model that sees nothing, a part that another upstream has made.  The chat goes on in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from proxy.chat.models.tokens import Tokenizers
from tests.support.rig import Rig, Talk
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


GONE = error_answer(400, "Error while downloading.")
Json = dict[str, Any]


def said(text: str) -> Json:
    return {"role": "user", "content": text}


def picture(words: str, url: str = "https://pictures/cat.png") -> Json:
    part = {"type": "image_url", "image_url": {"url": url}}
    return {"role": "user", "content": [{"type": "text", "text": words}, part]}


async def asked(talk: Talk, message: Json, **more: Any) -> list[object]:
    """The reason that an answer gives, and whether each request had the picture of a cat."""
    before = len(talk.rig.up.requests)
    answered = await talk.ask([message], **more)
    assert answered.status_code == 200
    sent = [json.dumps(request.json) for request in talk.rig.up.requests[before:]]
    return [answered.headers.get("x-memory-reason"), *["cat.png" in each for each in sent]]


async def why(talk: Talk, response: httpx.Response) -> Json:
    """What the record of an exchange says of its prompt."""
    id = response.headers["x-memory-exchange-id"]
    url = f"/memory/v1/sessions/{talk.session}/exchanges/{id}"
    found: Json = (await talk.rig.client.get(url, headers=talk.all_headers)).json()
    return dict(found["memory"])


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


async def test_a_model_that_takes_text_alone_is_told_so_though_the_error_names_the_model(
    one: Rig,
) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    refusal = error_answer(400, "This model only supports text input.", "unsupported", "model")
    one.up.always(without("cat.png", refusal, json_answer(chat_completion("a2"))))
    assert await asked(talk, said("u2")) == ["media_refused", True, False]


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


async def test_what_was_refused_is_told_in_words_at_once(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(without("cat.png", GONE, json_answer(chat_completion("a"))))
    assert await asked(talk, said("u2")) == ["media_refused", True, False]
    assert await asked(talk, said("u3")) == ["media_refused", False]


async def test_a_picture_that_came_after_the_refusal_is_sent(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(without("cat.png", GONE, json_answer(chat_completion("a"))))
    await asked(talk, said("u2"))
    await asked(talk, picture("u3", "https://pictures/dog.png"))
    assert await asked(talk, said("u4")) == ["media_refused", False]
    assert "dog.png" in json.dumps(one.up.requests[-1].messages)


async def test_another_model_and_another_session_get_the_picture_again(one: Rig) -> None:
    talk, other = one.talk(), one.talk()
    for each in (talk, other):
        await each.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(without("cat.png", GONE, json_answer(chat_completion("a"))))
    await asked(talk, said("u2"))
    assert await asked(talk, said("u3"), model="sees") == ["media_refused", True, False]
    assert await asked(other, said("u2")) == ["media_refused", True, False]
    assert await asked(talk, said("u4"), model="sees") == ["media_refused", False]


async def test_what_was_not_to_blame_is_sent_again(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(error_answer(400, "No."))
    await talk.ask([said("u2")])
    one.up.always(json_answer(chat_completion("a")))
    assert await asked(talk, said("u2")) == [None, True]


async def test_tokens_are_those_of_the_line_that_was_sent(one: Rig) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(without("cat.png", GONE, json_answer(chat_completion("a"))))
    count = Tokenizers().counter_for("scripted-1").count
    for n in (2, 3):
        answered = await talk.ask([said(f"u{n}")])
        tokens, memory = int(answered.headers["x-memory-tokens"]), await why(talk, answered)
        assert tokens == memory["tokens"] == sum(map(count, one.up.requests[-1].messages[:-1]))
        assert tokens == sum(piece["tokens"] for piece in memory["shown"])


OWN = [
    (400, {"error": {"message": "Expected a value <= 2", "param": "temperature"}}),
    (400, {"error": {"message": "Not one of low, high", "param": "reasoning.effort"}}),
    (400, {"type": "error", "error": {"message": "temperature: range: 0..1"}}),
    (422, {"detail": [{"loc": ["body", "temperature"], "msg": "less than 2"}]}),
    (422, {"message": {"detail": [{"loc": ["body", "temperature"], "msg": "less than 2"}]}}),
    (404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}),
]


@pytest.mark.parametrize(("status", "error"), OWN)
async def test_a_parameter_of_the_clients_is_the_clients_to_mend(
    one: Rig, status: int, error: Json
) -> None:
    talk = one.talk()
    await talk.ask([picture("u1")], json_answer(chat_completion("a1")))
    one.up.always(json_answer(error, status))
    before = len(one.up.requests)
    refused = await talk.ask([said("u2")], temperature=3, reasoning={"effort": "some"})
    assert (refused.status_code, refused.json()) == (status, error)
    assert len(one.up.requests) == before + 1


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
