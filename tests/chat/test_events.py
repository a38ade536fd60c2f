from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.reply.events import end_signal, may_end


def chunk(*choices: object, **more: object) -> bytes:
    return json.dumps({"id": "x", "choices": choices, **more}).encode()


def choice(reason: object, index: object = 0, **delta: object) -> dict[str, object]:
    return {"index": index, "delta": delta, "finish_reason": reason}


HALF = b'{"choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":"stop"}]}'
FIRST = b'{"choices":[{"finish_reason" :\t"stop","index":0,"delta":{}}]}'
ESCAPED = b'{"choices":[{"index":0,"delta":{},"\\u0066inish_reason":"stop"}]}'
TWICE = b'{"choices":[{"index":0,"finish_reason":null,"finish_reason":"stop"}]}'

MARKED: dict[str, tuple[bytes, str]] = {
    "a reason": (chunk(choice("stop")), "finish"),
    "the reason first": (FIRST, "finish"),
    "an escaped key": (ESCAPED, "finish"),
    "a key given twice": (TWICE, "finish"),
    "half an emoji beside it": (HALF, "finish"),
    "no index": (b'{"choices":[{"delta":{},"finish_reason":"stop"}]}', "finish"),
    "index null": (chunk(choice("length", None)), "finish"),
    "a reason of another type": (chunk(choice({"type": "stop"})), "finish"),
    "the second in the list is choice 0": (chunk(choice(None, 1), choice("stop", 0)), "finish"),
    "an error beside the choice": (chunk(choice("error"), error={"code": 1}), "finish"),
    "done": (b"[DONE]", "done"),
    "done in white space": (b" [DONE]\r", "done"),
    "error": (b'{"error":{"message":"overloaded"}}', "error"),
    "error as text": (b'{"error":"overloaded"}', "error"),
    "error with no choices": (chunk(error={"message": "x"}), "error"),
    "object error": (b'{"object":"error","message":"x","code":400}', "error"),
    "escaped error": (b'{"\\u0065rror":{"message":"\\ud83d"}}', "error"),
}

UNMARKED: dict[str, bytes] = {
    "text": chunk(choice(None, content="hi")),
    "no reason at all": b'{"choices":[{"index":0,"delta":{"content":"hi"}}]}',
    "an empty reason": chunk(choice("", content="hi")),
    "another choice": chunk(choice("stop", 1)),
    "another choice without an index": b'{"choices":[{"delta":{}},{"finish_reason":"stop"}]}',
    "a token that spells it": chunk(choice(None, content="finish_reason")),
    "text that spells it": chunk(choice(None, content='"finish_reason": "stop"')),
    "text that spells the end": chunk(choice(None, content="[DONE]")),
    "text that spells an error": chunk(choice(None, content='{"error": 1}')),
    "nested": chunk({"index": 0, "delta": {"x": {"finish_reason": "stop"}}, "finish_reason": None}),
    "beside the choices": chunk(choice(None), finish_reason="stop"),
    "usage": chunk(usage={"total_tokens": 3}),
    "error null": chunk(choice(None), error=None),
    "error null without choices": b'{"error":null}',
    "a list": b'[{"error":1}]',
    "choices of another type": b'{"choices":{"finish_reason":"stop"}}',
    "garbage": b'{"finish_reason":"stop"',
    "more behind the end": b"[DONE] [DONE]",
    "empty": b"",
    "odd choices": b'{"choices":[5,{"index":"0","finish_reason":"stop"}]}',
}


@pytest.mark.parametrize(("payload", "kind"), MARKED.values(), ids=MARKED)
def test_a_payload_is_marked_and_suspected(payload: bytes, kind: str) -> None:
    assert end_signal(payload) == kind
    assert may_end(payload)


@pytest.mark.parametrize("payload", UNMARKED.values(), ids=UNMARKED)
def test_a_payload_means_nothing(payload: bytes) -> None:
    assert end_signal(payload) is None


def test_plain_text_is_above_suspicion() -> None:
    assert not may_end(UNMARKED["text"])
    assert not may_end(UNMARKED["no reason at all"])
    assert not may_end(b'{"choices":[{"finish_reason" :\n null}]}')


def test_deep_nesting_means_nothing() -> None:
    assert end_signal(b'{"error":' + b"[" * 100_000 + b"]" * 100_000 + b"}") is None


words = st.sampled_from(
    ["finish_reason", "error", "index", "choices", "[DONE]", "stop", "\ud83d", "object", "\x00", ""]
)
leaves = st.none() | st.booleans() | st.integers(0, 1) | words
things = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 2) | things,
        "finish_reason": st.sampled_from(["stop", "length"]) | things,
        "delta": things,
    },
)
chunks = st.fixed_dictionaries(
    {},
    optional={"choices": st.lists(choices, max_size=3), "error": things, "object": words},
)


def escaped(raw: bytes, key: str) -> bytes:
    """The same JSON with the first letter of a word written as an escape."""
    return raw.replace(key.encode(), f"\\u{ord(key[0]):04x}{key[1:]}".encode())


@given(
    chunks,
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r\n ")]),
    st.sampled_from(["", "finish_reason", "error"]),
)
def test_what_is_marked_is_always_suspected(
    event: dict[str, object], separators: tuple[str, str], key: str
) -> None:
    raw = json.dumps(event, separators=separators).encode()
    raw = escaped(raw, key) if key else raw
    assert may_end(raw) or end_signal(raw) is None
