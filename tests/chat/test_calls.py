"""Tool calls as upstreams really stream them."""

from __future__ import annotations

from tests.support.upstream.replies import Fields, call, calls_in, piece, plain, streamed


def test_whole_calls_in_one_delta_without_index_or_id() -> None:
    both = [{"function": {"name": name, "arguments": "{}"}} for name in "fg"]
    assert calls_in(streamed({"tool_calls": both})) == [("", "f", "{}"), ("", "g", "{}")]


def test_whole_calls_in_a_delta_each_under_the_same_index() -> None:
    parts: list[Fields] = [{"tool_calls": [call("{}", id=i, index=0)]} for i in ("c1", "c2")]
    assert calls_in(streamed(*parts)) == [("c1", "f", "{}"), ("c2", "f", "{}")]


def test_whole_calls_in_a_delta_each_without_ids() -> None:
    parts: list[Fields] = [
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": a}}]}
        for a in ('{"a":1}', '{"a":2}')
    ]
    assert calls_in(streamed(*parts)) == [("", "f", '{"a":1}'), ("", "f", '{"a":2}')]


def test_pieces_without_an_index_belong_to_their_id_or_to_the_newest_call() -> None:
    choice = streamed(
        {"tool_calls": [call("", id="c1")]},
        piece('{"a"'),
        piece(":1}"),
        {"tool_calls": [call("", id="c2", name="g")]},
        piece("{}"),
        piece(" ", id="c1"),
    )
    assert calls_in(choice) == [("c1", "f", '{"a":1} '), ("c2", "g", "{}")]


def test_a_name_in_pieces_is_put_together_and_a_repeated_one_is_not() -> None:
    def named(name: str) -> Fields:
        return {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": name}}]}

    assert calls_in(streamed(named("get_"), named("weather"))) == [("c1", "get_weather", "")]
    assert calls_in(streamed(named("get"), named("get"), named("get"))) == [("c1", "get", "")]


def test_arguments_that_come_as_an_object_are_text() -> None:
    item = {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}
    assert calls_in(streamed({"tool_calls": [item]})) == [("c1", "f", '{"a":1}')]
    assert calls_in(plain({"tool_calls": [item]})) == [("c1", "f", '{"a":1}')]
