"""Any chunking of a message is the message."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.message import read_stored
from tests.support.upstream.replies import Fields, call, plain, streamed

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
prose = st.text(st.characters(codec=None, categories=["L", "N", "P", "Zs", "So"]), max_size=20)


@st.composite
def messages(draw: st.DrawFn) -> Fields:
    message: Fields = {"role": "assistant", "content": draw(st.none() | prose)}
    if draw(st.booleans()):
        message["tool_calls"] = [
            call(draw(prose), id=f"c{number}", name=draw(names))
            for number in range(draw(st.integers(1, 3)))
        ]
    for key in ("refusal", "reasoning_content", "reasoning"):
        if draw(st.integers(0, 3)) == 0:
            message[key] = draw(prose)
    if draw(st.integers(0, 4)) == 0:
        message["function_call"] = {"name": draw(names), "arguments": draw(prose)}
    if draw(st.integers(0, 4)) == 0:
        message["audio"] = {"id": "a1", "data": draw(prose), "transcript": draw(prose)}
    if draw(st.integers(0, 4)) == 0:
        message["annotations"] = [{"type": "url_citation", "n": n} for n in range(2)]
    return message


def cut(draw: st.DrawFn, text: str) -> list[str]:
    ends = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@st.composite
def chunked(draw: st.DrawFn) -> tuple[Fields, list[Fields]]:
    """A message, and deltas that add up to it, in the order of its fields or not."""
    message = draw(messages())
    runs: list[list[Fields]] = []
    for key, value in message.items():
        if key == "tool_calls":
            assert isinstance(value, list)
            runs += [_call_run(draw, place, item) for place, item in enumerate(value)]
        elif key == "function_call":
            assert isinstance(value, dict)
            runs.append(_function_run(draw, value))
        elif key == "audio":
            assert isinstance(value, dict)
            runs.append([{"audio": {"id": "a1"}}])
            for name in ("data", "transcript"):
                runs[-1] += [{"audio": {name: text}} for text in cut(draw, value[name])]
        elif isinstance(value, str) and key != "role":
            runs.append([{key: text} for text in cut(draw, value)])
        else:
            runs.append([{key: value}])
    return message, _woven(draw, runs)


def _call_run(draw: st.DrawFn, place: int, item: Fields) -> list[Fields]:
    function = item["function"]
    assert isinstance(function, dict)
    name, pieces = function["name"], cut(draw, function["arguments"])
    again = draw(st.booleans())  # some upstreams repeat what names the call
    head = {"index": place, "id": item["id"], "type": "function"}
    first = {**head, "function": {"name": name, "arguments": pieces[0]}}
    rest = [
        {**head, "function": {"name": name, "arguments": text}}
        if again
        else {"index": place, "function": {"arguments": text}}
        for text in pieces[1:]
    ]
    return [{"tool_calls": [one]} for one in (first, *rest)]


def _function_run(draw: st.DrawFn, function: Fields) -> list[Fields]:
    arguments = function["arguments"]
    assert isinstance(arguments, str)
    run: list[Fields] = [{"function_call": {"name": function["name"], "arguments": ""}}]
    run += [{"function_call": {"arguments": text}} for text in cut(draw, arguments)]
    return run


def _woven(draw: st.DrawFn, runs: list[list[Fields]]) -> list[Fields]:
    """The runs, interleaved; the order within each is kept."""
    order = draw(st.permutations([number for number, run in enumerate(runs) for _ in run]))
    waiting = [iter(run) for run in runs]
    return [next(waiting[number]) for number in order]


@given(chunked())
def test_any_chunking_of_a_message_is_recorded_like_the_plain_message(
    case: tuple[Fields, list[Fields]],
) -> None:
    message, parts = case
    if "tool_calls" in message:  # calls are listed in the order in which they began
        order = [part["tool_calls"] for part in parts if "tool_calls" in part]
        began = [c["index"] for items in order if isinstance(items, list) for c in items]
        listed = message["tool_calls"]
        assert isinstance(listed, list)
        message["tool_calls"] = [listed[index] for index in dict.fromkeys(began)]
    assert streamed(*parts) == plain(message)


@given(messages())
def test_what_is_recorded_is_equal_to_what_the_client_will_send_back(message: Fields) -> None:
    sent = read_stored(json.dumps(message).encode())
    choice = plain(message)
    assert (choice.digest, choice.calls) == (sent.digest, sent.calls)
    assert choice.digest == read_stored(choice.body).digest
