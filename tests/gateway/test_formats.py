"""Another API plugs in by its format alone: here one of items, with events of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage, Piece, read_message
from proxy.chat.reply.answer import Choice, Reply, make_choice
from proxy.chat.reply.events import EndSignal
from proxy.chat.request import ChatRequest
from proxy.errors import RawHeaders
from proxy.formats.format import Addition
from proxy.gateway.routes import ERRORS, FORMATS
from tests.support.rig import Rig, Talk, rig
from tests.support.upstream.answers import Script, event, json_answer, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Items:
    """``{"rules": "...", "items": [{"by": "user", "says": "..."}]}``; the answer: ``says``."""

    records = True
    has_signed_content = False
    supports_tools = False
    has_own_system = False

    def is_side_request(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return (b"x-title-of", b"a chat") in headers

    def read(self, body: bytes, max_inline_media_bytes: int) -> ChatRequest:
        fields = jsontext.fields(body)
        items = jsontext.items(fields["items"])
        return ChatRequest(
            fields={**fields, "items": b""},
            leading=(),
            messages=tuple(map(_message, items)),
            model=None,
            n=1,
            max_output=None,
            has_own_system=self.has_own_system,
        )

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        items = jsontext.join_items([_item(piece) for piece in addition.messages])
        system = (addition.system or b"").decode()
        rules = jsontext.encode(system + addition.head + addition.tail)
        return jsontext.join_fields({**request.fields, "items": items, "rules": rules})

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return None

    def read_reply(self, body: bytes) -> Reply | None:
        return Reply(choices=(_choice(json.loads(body)["says"], complete=True),))

    def read_stream(self) -> Words:
        return Words()


class Words:
    """``{"word": "..."}`` again and again, then ``{"over": true}``."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._over = False

    def may_end(self, raw: bytes) -> bool:
        return b"over" in raw

    def end_signal(self, payload: bytes) -> EndSignal | None:
        return "finish" if json.loads(payload).get("over") else None

    def feed(self, payload: bytes) -> None:
        said = json.loads(payload)
        self._words.append(said.get("word", ""))
        self._over = self._over or "over" in said

    def build(self) -> Reply:
        return Reply(choices=(_choice("".join(self._words), complete=self._over),))


def _message(raw: bytes) -> ChatMessage:
    item = json.loads(raw)
    said = jsontext.encode({"role": item["by"], "content": item["says"]})
    message = read_message(said)
    assert message is not None
    return replace(message, raw=raw, chat_json=said)


def _item(piece: Piece) -> bytes:
    if isinstance(piece, ChatMessage):
        return piece.raw
    stored = json.loads(piece)
    return jsontext.encode({"by": stored["role"], "says": stored["content"]})


def _choice(text: str, *, complete: bool) -> Choice:
    return make_choice(
        0,
        {"role": "assistant", "content": text},
        finish_reason="stop" if complete else None,
        complete=complete,
    )


@pytest.fixture
def talk(one: Rig, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setitem(FORMATS, "items", Items())
    talk = one.talk()
    talk.path = "/v1/items"
    yield talk


async def says(talk: Talk, text: str, script: Script) -> Any:
    """What the upstream got."""
    talk.rig.up.reply(script)
    answer = await talk.post({"items": [{"by": "user", "says": text}], "rules": ""})
    assert answer.status_code == 200
    return talk.rig.up.requests[-1].json["items"]


def plain(text: str) -> Script:
    return json_answer({"says": text})


def streamed(text: str) -> Script:
    events = [*({"word": letter} for letter in text), {"over": True}]
    return sse([event(json.dumps(each).encode()) for each in events])


@pytest.mark.parametrize("answered", [plain, streamed])
async def test_what_was_said_comes_back_in_the_form_of_the_api(talk: Talk, answered: Any) -> None:
    assert await says(talk, "One?", answered("two")) == [{"by": "user", "says": "One?"}]
    assert await says(talk, "Three?", answered("four")) == [
        {"by": "user", "says": "One?"},
        {"by": "assistant", "says": "two"},
        {"by": "user", "says": "Three?"},
    ]


@pytest.mark.parametrize("answered", [plain, streamed])
async def test_history_has_messages_like_any_other(talk: Talk, answered: Any) -> None:
    await says(talk, "One?", answered("two"))
    assert await talk.bodies() == [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "two"},
    ]
    exchange = await talk.exchange((await talk.history())[0].card.exchange)
    assert not exchange.incomplete


async def test_a_conversation_may_go_on_in_another_format(talk: Talk) -> None:
    await says(talk, "One?", streamed("two"))
    chat = Talk(talk.rig, talk.session)
    assert await chat.say("u3", "a4") != ""
    assert [m["content"] for m in talk.rig.up.requests[-1].messages[:2]] == ["One?", "two"]


async def test_no_functions_are_offered_in_a_format_that_has_no_place_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "items", Items())
    async with rig(tmp_path, memory__tools__enabled=True) as one:
        talk = one.talk()
        talk.path, talk.headers = "/v1/items", {"X-User-Id": "kai"}
        await says(talk, "One?", plain("two"))
        assert "tools" not in one.up.requests[-1].json
        chat = Talk(one, talk.session, headers=talk.headers)
        await chat.say("u3", "a4")
        assert "tools" in one.up.requests[-1].json


async def test_what_its_program_asks_beside_the_conversation_is_passed_on_as_it_is(
    talk: Talk,
) -> None:
    await says(talk, "One?", plain("two"))
    talk.rig.up.reply(plain("A title"))
    body = b'{"items": [{"by":"user",  "says":"A title, please"}]}'
    answer = await talk.post(body, x_title_of="a chat")
    assert answer.headers["x-memory-reason"] == "side_request"
    assert talk.rig.up.requests[-1].body == body
    assert len(await talk.bodies()) == 2


async def test_a_format_whose_requests_are_no_turns_has_memory_and_records_nothing(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await says(talk, "One?", plain("two"))
    monkeypatch.setattr(Items, "records", False)
    assert len(await says(talk, "Three?", plain("four"))) == 3
    assert len(await talk.bodies()) == 2


async def test_system_text_of_one_request_is_neither_remembered_nor_filled_in(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Talk(talk.rig, talk.session)
    await chat.say("s1 u1", "a1")
    await says(talk, "One?", plain("two"))
    assert "s1" in talk.rig.up.requests[-1].json["rules"]
    monkeypatch.setattr(Items, "has_own_system", True)
    talk.rig.up.reply(plain("four"))
    answer = await talk.post({"items": [{"by": "user", "says": "Three?"}]})
    assert answer.headers["x-memory-messages"] == "4"
    assert "s1" not in talk.rig.up.requests[-1].json["rules"]


async def test_an_api_says_in_its_own_way_that_the_proxy_refuses(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ERRORS, "items", lambda error: error.code.encode())
    answer = await talk.post({"items": []}, x_session_id="not one")
    assert (answer.status_code, answer.text) == (400, "invalid_session_id")
