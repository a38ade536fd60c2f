"""Streamed answers as upstreams really send them, each beside the plain answer that it is."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.upstream.answers import USAGE

Json = dict[str, Any]

NEWLINES = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}


@dataclass(frozen=True)
class Spoken:
    """``stream`` with LF as its line end; ``choices`` are what a plain answer would hold.

    ``incomplete``: choice 0 was not finished.  ``n`` is what the request asked for.
    """

    stream: bytes
    choices: tuple[Json, ...]
    incomplete: bool = False
    n: int = 1
    usage: bool = False

    def plain(self) -> Json:
        answer: Json = {"id": "x", "object": "chat.completion", "model": "scripted-1"}
        answer["choices"] = list(self.choices)
        return answer | ({"usage": USAGE} if self.usage else {})

    def with_newline(self, newline: bytes) -> bytes:
        return self.stream.replace(b"\n", newline)


def cuts(raw: bytes, feeding: str, newline: bytes) -> list[bytes]:
    """The stream in pieces: whole, per event, byte by byte, or at random places."""
    if feeding == "whole":
        return [raw]
    if feeding == "bytes":
        return [raw[at : at + 1] for at in range(len(raw))]
    if feeding == "events":
        end = newline * 2
        *parts, last = raw.split(end)
        return [part + end for part in parts] + ([last] if last else [])
    rng = random.Random(len(raw))
    places = sorted(rng.sample(range(1, len(raw)), min(30, len(raw) - 1)))
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]


def data(value: object) -> bytes:
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return b"data: " + raw + b"\n\n"


def chunk(*choices: Json, **more: object) -> Json:
    return {"object": "chat.completion.chunk", "model": "scripted-1", "choices": choices, **more}


def delta(index: int = 0, /, finish: str | None = None, **fields: object) -> Json:
    return chunk({"index": index, "delta": fields, "finish_reason": finish})


def said(index: int = 0, /, finish: str | None = "stop", **fields: object) -> Json:
    message = {"role": "assistant", "content": None, **fields}
    return {"index": index, "message": message, "finish_reason": finish}


DONE = data(b"[DONE]")
HELLO = (delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"))
END = delta(finish="stop")
USED = chunk(usage=USAGE)


def events(*values: object) -> bytes:
    return b"".join(data(value) for value in values)


def hello(stream: bytes, **more: Any) -> Spoken:
    return Spoken(stream, (said(content="Hello"),), **more)


def call(index: int, arguments: str, **first: object) -> Json:
    function = {"arguments": arguments} | ({"name": first.pop("name")} if "name" in first else {})
    return delta(tool_calls=[{"index": index, **first, "function": function}])


def whole_call(id: str, name: str, arguments: str) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _several(order: Sequence[int]) -> Spoken:
    """Choices that stream in turns and finish in this order, the rest of one after the first."""
    n = len(order)
    parts = [delta(i, role="assistant", content=f"{i}:") for i in range(n)]
    parts += [delta(i, content=f"a{i} ") for i in range(n)]
    for i in order:
        parts += [delta(i, content=f"b{i}"), delta(i, finish="stop")]
    choices = tuple(said(i, content=f"{i}:a{i} b{i}") for i in range(n))
    return Spoken(events(*parts, USED) + DONE, choices, n=n, usage=True)


AUDIO = base64.b64encode(b"sound").decode()
PROBABLE = {"content": [{"token": "Hello", "logprob": -0.1, "bytes": None, "top_logprobs": []}]}
TWO_LINES = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "Hello"},\n'
    b'data: "finish_reason": null}]}\n\n'
)

SPOKEN: dict[str, Spoken] = {
    "text": hello(events(*HELLO, END) + DONE),
    "parallel-tool-calls": Spoken(
        events(
            delta(role="assistant", content=None),
            call(0, "", id="c1", type="function", name="f"),
            call(0, '{"ci'),
            call(1, "", id="c2", type="function", name="g"),
            call(0, 'ty":"Oslo"}'),
            call(1, "{}"),
            delta(finish="tool_calls"),
        )
        + DONE,
        (
            said(
                finish="tool_calls",
                tool_calls=[whole_call("c1", "f", '{"city":"Oslo"}'), whole_call("c2", "g", "{}")],
            ),
        ),
    ),
    "legacy-function": Spoken(
        events(
            delta(role="assistant", content=None, function_call={"name": "f", "arguments": ""}),
            delta(function_call={"arguments": '{"a"'}),
            delta(function_call={"arguments": ":1}"}),
            delta(finish="function_call"),
        )
        + DONE,
        (said(finish="function_call", function_call={"name": "f", "arguments": '{"a":1}'}),),
    ),
    "two-choices-first-finishes-first": _several((0, 1)),
    "two-choices-first-finishes-last": _several((1, 0)),
    "three-choices-first-in-the-middle": _several((2, 0, 1)),
    "three-choices-first-finishes-first": _several((0, 2, 1)),
    "refusal": Spoken(
        events(delta(role="assistant", refusal="I can"), delta(refusal="not."), END) + DONE,
        (said(refusal="I cannot."),),
    ),
    "logprobs": Spoken(
        events(
            chunk(
                {
                    "index": 0,
                    "delta": {"role": "assistant", "content": "Hello"},
                    "logprobs": PROBABLE,
                    "finish_reason": None,
                }
            ),
            END,
        )
        + DONE,
        ({**said(content="Hello"), "logprobs": PROBABLE},),
    ),
    "audio": Spoken(
        events(
            delta(role="assistant", audio={"id": "audio_1", "transcript": "Hel"}),
            delta(audio={"data": AUDIO, "transcript": "lo"}),
            delta(audio={"expires_at": 1_700_000_000}),
            END,
        )
        + DONE,
        (
            said(
                audio={
                    "id": "audio_1",
                    "transcript": "Hello",
                    "data": AUDIO,
                    "expires_at": 1_700_000_000,
                }
            ),
        ),
    ),
    "usage-behind-the-finish": hello(events(*HELLO, END, USED) + DONE, usage=True),
    "usage-with-the-finish": hello(
        events(*HELLO, {**END, "usage": USAGE}) + DONE,
        usage=True,
    ),
    "without-done": hello(events(*HELLO, END)),
    "without-done-and-last-empty-line": hello(events(*HELLO, END).removesuffix(b"\n\n")),
    "comments-and-keep-alives": hello(
        b": OPENROUTER PROCESSING\n\n\n: ping\nevent: ping\nid: 1\nretry: 5\n\n"
        + events(*HELLO)
        + b": still here\n\n"
        + events(END)
        + DONE
    ),
    "no-space-behind-the-colon": hello((events(*HELLO, END) + DONE).replace(b"data: ", b"data:")),
    "data-in-two-lines": hello(TWO_LINES + events(END) + DONE),
    "finish-in-two-lines": hello(
        events(*HELLO) + b'data: {"choices": [{"index": 0, "delta": {},\n'
        b'data: "finish_reason": "stop"}]}\n\n' + DONE
    ),
    "finish-first-in-its-choice": hello(
        events(*HELLO)
        + b'data: {"choices":[{"finish_reason":"stop","delta":{},"index":0}]}\n\n'
        + DONE
    ),
    "finish-with-the-last-text": hello(
        events(*HELLO[:2], delta(content="lo", finish="stop")) + DONE
    ),
    "an-empty-finish-is-none": hello(
        events(*(json.loads(json.dumps(x).replace("null", '""')) for x in HELLO), END) + DONE
    ),
    "byte-order-mark": hello(b"\xef\xbb\xbf" + events(*HELLO, END) + DONE),
    "line-separators-in-the-text": Spoken(
        events(delta(content="a\u2028b\u2029c\x85d\x0be\x0cf"), END) + DONE,
        (said(content="a\u2028b\u2029c\x85d\x0be\x0cf"),),
    ),
    "done-in-the-text": Spoken(
        events(delta(content="data: [DONE]"), delta(content='"finish_reason":"stop"'), END) + DONE,
        (said(content='data: [DONE]"finish_reason":"stop"'),),
    ),
    "a-special-token-in-the-text": Spoken(
        events(delta(content="<|endoftext|>"), delta(content="<|im_end|>"), END) + DONE,
        (said(content="<|endoftext|><|im_end|>"),),
    ),
    "half-an-emoji-in-each-chunk": Spoken(
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00!"}}]}\n\n' + events(END) + DONE,
        (said(content="😀!"),),
    ),
    "reasoning": Spoken(
        events(delta(reasoning_content="hm"), delta(reasoning_content="m"), *HELLO, END) + DONE,
        (said(content="Hello", reasoning_content="hmm"),),
    ),
    "garbage-between": hello(
        events(*HELLO[:2]) + b"data: {not json\n\ndata\n\ndata: 7\n\ndata: null\n\n"
        b"data: [1]\n\n" + events(HELLO[2], END) + DONE
    ),
    "error-event": Spoken(
        events(*HELLO, {"error": {"message": "overloaded", "type": "server_error"}}),
        (said(content="Hello", finish=None),),
        incomplete=True,
    ),
    "clean-end-without-a-finish": Spoken(
        events(*HELLO), (said(content="Hello", finish=None),), incomplete=True
    ),
    "done-without-a-finish": Spoken(
        events(*HELLO) + DONE, (said(content="Hello", finish=None),), incomplete=True
    ),
    "a-call-that-was-not-finished": Spoken(
        events(delta(content="well"), call(0, '{"ci', id="c1", type="function", name="f")),
        (said(content="well", finish=None),),
        incomplete=True,
    ),
    "nothing-at-all": Spoken(b": hello\n\n", (), incomplete=True),
}


def finish_of(stream: bytes) -> int:
    """Where the line with choice 0's finish begins."""
    return stream.rindex(b"data: ", 0, stream.index(b'"finish_reason": "stop"'))
