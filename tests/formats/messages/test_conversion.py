"""To the stored form and back is the identity: one log, two views, whatever was said."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import ChatMessage, read_message
from proxy.chat.native import without_native
from proxy.chat.request import ChatRequest
from proxy.formats.chat_completions import ChatCompletions
from proxy.formats.format import Addition
from proxy.formats.messages.messages import Messages
from tests.support.upstream import anthropic, strict
from tests.support.upstream.anthropic import blocks, text, thinking, tool_result, tool_use

Json = dict[str, Any]
THOUGHTS = ("thinking", "redacted_thinking")
HEADERS = {"anthropic-version": "2023-06-01"}

words = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20
).filter(lambda said: bool(said.strip()))
data = st.binary(min_size=1, max_size=30).map(lambda raw: base64.b64encode(raw).decode())
urls = st.just("https://example.com/a.png")
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
inputs = st.dictionaries(words, values, max_size=3)


def source(kind: str, media: str, content: str) -> Json:
    if kind == "url":
        return {"type": "url", "url": content}
    return {"type": kind, "media_type": media, "data": content}


images = st.builds(
    lambda where: {"type": "image", "source": where},
    st.builds(source, st.just("base64"), st.sampled_from(["image/png", "image/webp"]), data)
    | st.builds(source, st.just("url"), st.just(""), urls),
)
documents = st.builds(
    lambda where, more: {"type": "document", "source": where, **more},
    st.builds(source, st.just("base64"), st.just("application/pdf"), data)
    | st.builds(source, st.just("text"), st.just("text/plain"), words)
    | st.builds(source, st.just("url"), st.just(""), urls),
    st.fixed_dictionaries({}, optional={"title": words, "citations": st.just({"enabled": True})}),
)
uploads = st.builds(lambda id: {"type": "container_upload", "file_id": id}, names)
texts = st.builds(text, words)
said_by_user = texts | images | documents | uploads
results = st.one_of(words, st.lists(texts | images | documents, min_size=1, max_size=3))
marks = st.sampled_from([{}, {}, {}, {"cache_control": {"type": "ephemeral"}}])


@st.composite
def answers(draw: st.DrawFn, ids: count[int], calls: int) -> list[Json]:
    """What the model says: thoughts, searches and texts, then its calls."""
    found: list[Json] = []
    if draw(st.booleans()):
        found.append(thinking(draw(words)))
    if draw(st.booleans()):
        found.append({"type": "redacted_thinking", "data": draw(data)})
    if draw(st.booleans()):
        id = f"srvtoolu_{next(ids)}"
        hit = {"type": "web_search_result", "url": "https://example.com", "title": draw(words)}
        found.append({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
        found.append({"type": "web_search_tool_result", "tool_use_id": id, "content": [hit]})
    for said in draw(st.lists(words, min_size=0 if calls else 1, max_size=2)):
        cited = {"citations": [{"type": "char_location", "cited_text": said}]}
        found.append({**text(said), **(cited if draw(st.booleans()) else {})})
    for _ in range(calls):
        found.append(tool_use(draw(names), draw(inputs), f"toolu_{next(ids)}"))
    return found


@st.composite
def turns(draw: st.DrawFn) -> list[Json]:
    """One turn: a question, a loop of calls and their results, and an answer or none yet."""
    ids = count()
    asked = draw(st.lists(said_by_user, min_size=1, max_size=3))
    found: list[Json] = [{"role": "user", "content": [{**block, **draw(marks)} for block in asked]}]
    for calls in draw(st.lists(st.integers(1, 3), max_size=2)):
        found.append({"role": "assistant", "content": draw(answers(ids, calls))})
        uses = [block["id"] for block in found[-1]["content"] if block["type"] == "tool_use"]
        answered = [tool_result(id, draw(results)) for id in uses]
        failed = [
            {**block, "is_error": True} if draw(st.booleans()) else block for block in answered
        ]
        beside = draw(st.lists(texts, max_size=1))
        found.append({"role": "user", "content": [*failed, *beside]})
    if draw(st.booleans()):
        found.append({"role": "assistant", "content": draw(answers(ids, 0))})
    return found


def read(messages: Sequence[Mapping[str, Any]], api: Any = None, **more: Any) -> ChatRequest:
    body = {"model": "m", "max_tokens": 9, "messages": messages, **more}
    request = (api or Messages()).read(json.dumps(body).encode(), 1 << 20)
    assert isinstance(request, ChatRequest), request
    return request


def written(pieces: Sequence[ChatMessage | bytes], api: Any = None) -> list[Json]:
    addition = Addition(system=None, messages=pieces, head="", tail="", separate=False)
    found: list[Json] = json.loads((api or Messages()).write(read([]), addition))["messages"]
    return found


def stored(messages: Sequence[Mapping[str, Any]]) -> list[bytes]:
    return [message.record for message in read(messages).messages]


def plainly(messages: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Messages as they compare: contents as lists, without marks."""
    return [
        {"role": said["role"], "content": [_bare(b) for b in blocks(said)]} for said in messages
    ]


def _bare(block: Json) -> Json:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    if bare["type"] == "tool_result":
        bare["content"] = [_bare(inner) for inner in blocks(bare)]
    return bare


@given(turns())
def test_what_was_said_comes_back_block_by_block(turn: list[Json]) -> None:
    assert plainly(written(stored(turn))) == plainly(turn)


@given(turns())
def test_the_clients_own_messages_come_back_as_they_were(turn: list[Json]) -> None:
    assert written(read(turn).messages) == turn


@given(turns())
def test_a_strict_upstream_of_either_api_takes_what_is_stored(turn: list[Json]) -> None:
    again = [*stored(turn), b'{"role": "user", "content": "Go on."}']
    body = {"model": "m", "max_tokens": 9, "messages": written(again)}
    anthropic.validate(body, HEADERS)
    said = [json.loads(without_native(message)) for message in stored(turn)]
    strict.validate({"model": "m", "messages": said})


@given(turns(), st.lists(said_by_user, min_size=1, max_size=2))
def test_thinking_of_a_turn_that_is_over_does_not_go_back(
    turn: list[Json], more: list[Json]
) -> None:
    over = [*turn, {"role": "assistant", "content": [thinking("Hm."), text("So.")]}]
    again = written(stored([*over, {"role": "user", "content": more}]))
    assert not [b for said in again for b in blocks(said) if b["type"] in THOUGHTS]


@given(turns())
def test_what_is_sent_again_is_what_is_stored(turn: list[Json]) -> None:
    """A client that resends all has the same messages, with its thinking or without."""
    thoughtless = [
        {**said, "content": [b for b in blocks(said) if b["type"] not in THOUGHTS]} for said in turn
    ]
    assert digests(read(thoughtless).messages) == digests(read(turn).messages)
    records = [read_message(record) for record in stored(turn)]
    assert digests([record for record in records if record]) == digests(read(turn).messages)


def digests(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.digest for message in messages]


# The other way: what chat completions said

parts = st.one_of(
    words.map(lambda said: {"type": "text", "text": said}),
    data.map(
        lambda raw: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{raw}"}}
    ),
    urls.map(lambda url: {"type": "image_url", "image_url": {"url": url}}),
    st.builds(
        lambda raw, name: {
            "type": "file",
            "file": {"filename": name, "file_data": f"data:application/pdf;base64,{raw}"},
        },
        data,
        words,
    ),
)


@st.composite
def chats(draw: st.DrawFn) -> list[Json]:
    """A turn of chat completions, of what both APIs can say."""
    ids = count()
    found: list[Json] = [{"role": "user", "content": draw(words | st.lists(parts, min_size=1))}]
    for calls in draw(st.lists(st.integers(1, 3), max_size=2)):
        made = [
            {
                "id": f"call_{next(ids)}",
                "type": "function",
                "function": {"name": draw(names), "arguments": json.dumps(draw(inputs))},
            }
            for _ in range(calls)
        ]
        found.append({"role": "assistant", "content": draw(st.none() | words), "tool_calls": made})
        for call in made:
            said = draw(st.just("") | words)
            found.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return [*found, {"role": "assistant", "content": draw(words)}]


@given(chats())
def test_what_chat_completions_said_is_the_same_by_way_of_messages(chat: list[Json]) -> None:
    own = read(chat, ChatCompletions()).messages
    there = written([message.record for message in own])
    back = read(there).messages
    assert digests(back) == digests(own)
    assert [without_native(m.record) for m in back] == [m.record for m in back]
    anthropic.validate(
        {"model": "m", "max_tokens": 9, "messages": [*there, {"role": "user", "content": "And?"}]},
        HEADERS,
    )
