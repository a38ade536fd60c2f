"""The rounds of a streamed answer, cut at any byte: what the client reads, what the model gets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.gateway.tools.rounds import Rounds, ToolStream
from proxy.gateway.tools.toolbox import ToolContext, ToolLog, ToolRun
from proxy.gateway.tools.use import ToolUse
from proxy.memory.model import Injection, SessionKey
from proxy.settings import ProfileSettings
from proxy.wire.failures import UpstreamBroken
from tests.support.upstream.spoken import DONE, SPOKEN, Json, chunk, cuts, delta, events, whole_call
from tests.support.upstream.tooling import (
    SAVE,
    SEARCH,
    USED,
    FakeReply,
    FakeTools,
    Seen,
    calls,
    saves,
    searches,
    seen,
    stream,
    text,
)

SENT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "tools": ["ours"]}
KEY = SessionKey("tenant", "session")


@dataclass
class Played:
    """An answer of these rounds: the bytes that the client got, piece by piece."""

    rounds: Sequence[FakeReply]
    own: bytes | None = None
    most: int = 3
    tools: FakeTools = field(default_factory=FakeTools)
    log: ToolLog = field(default_factory=ToolLog)
    bodies: list[Any] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)

    async def play(self) -> bytes:
        replies = list(self.rounds)

        async def ask(body: bytes) -> FakeReply:
            self.bodies.append(json.loads(body))
            return replies.pop(0)

        whose = ToolContext(KEY, "kai", "ex", ProfileSettings(), len, 1000.0)
        use = ToolUse((SAVE, SEARCH), self.most, self.own, whose, self.log)
        first = replies.pop(0)
        rounds = Rounds(json.dumps(SENT).encode(), use, self.tools, ask)
        reply = ToolStream(first, rounds)
        async for piece in reply.chunks():
            self.pieces.append(piece)
        await reply.close()
        assert all(one.closed for one in self.rounds[: len(self.rounds) - len(replies)])
        return b"".join(self.pieces)

    @property
    def runs(self) -> list[ToolRun]:
        return msgspec.json.decode(self.log.add_to(Injection()).tools, type=list[ToolRun])


async def played(*rounds: bytes, **more: Any) -> tuple[Seen, Played]:
    one = Played([FakeReply([raw]) for raw in rounds], **more)
    return seen(await one.play()), one


OURS = text("Let me see. ")
AFTER = stream(text("Kiel", "."), finish="stop", usage=USED, id="chatcmpl-2")
TWICE = {
    "prompt_tokens": 14,
    "completion_tokens": 10,
    "total_tokens": 24,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
}


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
async def test_an_answer_that_calls_no_memory_passes_byte_for_byte_with_each_event(
    spoken: Any, newline: bytes
) -> None:
    raw = spoken.with_newline(newline)
    pieces = cuts(raw, "events", newline)
    one = Played([FakeReply(pieces)])
    assert await one.play() == raw
    assert one.pieces == pieces
    assert not one.tools.whose and not one.bodies


@pytest.mark.parametrize("name", ["memory", "mem", "m", "memory_savings", "get_weather"])
async def test_the_clients_own_calls_pass_byte_for_byte_whatever_they_are_called(name: str) -> None:
    raw = stream(OURS, calls(name, '{"a":1}'), calls("other", "{}", 1, "c2"), usage=USED)
    one = Played([FakeReply(cuts(raw, "events", b"\n"))])
    assert await one.play() == raw


async def test_a_search_is_answered_and_the_next_stream_goes_on() -> None:
    found, one = await played(stream(OURS, searches("home"), usage=USED), AFTER)
    assert found == Seen(
        text="Let me see. Kiel.",
        calls=(),
        indexes=(),
        finish=("stop",),
        usage=TWICE,
        ids=frozenset({"chatcmpl-1"}),
        roles=1,
        dones=1,
    )
    assert one.tools.asked == ["home"]
    (body,) = one.bodies
    assert body["messages"] == [
        *SENT["messages"],
        {
            "role": "assistant",
            "content": "Let me see. ",
            "tool_calls": [whole_call("m1", SEARCH, '{"query": "home"}')],
        },
        {"role": "tool", "tool_call_id": "m1", "content": "Kai lives in Kiel."},
    ]
    assert body["tools"] == ["ours"]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param([saves("x")], "", id="alone"),
        pytest.param([saves("x"), text("and so ", "on")], "and so on", id="first"),
        pytest.param([text("so "), saves("x"), text("on")], "so on", id="between"),
        pytest.param([text("so "), text("on"), saves("x")], "so on", id="last"),
        pytest.param([saves("x"), saves("y", 1, "m2")], "", id="two"),
        pytest.param(
            [
                [
                    delta(
                        content="so",
                        tool_calls=[{"index": 0, **whole_call("m1", SAVE, '{"text":"x"}')}],
                    )
                ]
            ],
            "so",
            id="in-one-chunk",
        ),
    ],
)
async def test_text_around_a_call_of_memory_is_kept_and_parted_from_what_follows(
    parts: list[list[Json]], said: str
) -> None:
    found, one = await played(stream(*parts), AFTER)
    told = f"{said}\n\nKiel." if said else "Kiel."
    assert (found.text, found.calls, found.finish) == (told, (), ("stop",))
    assert one.tools.saved[0] == "x"
    assert (one.bodies[0]["messages"][1]["content"] or "") == said


async def test_parallel_calls_are_all_answered_in_their_order() -> None:
    first = stream(saves("x"), searches("y", 1, "m2"), saves("z", 2, "m3"))
    _, one = await played(first, AFTER)
    assert (one.tools.saved, one.tools.asked) == (["x", "z"], ["y"])
    results = one.bodies[0]["messages"][2:]
    assert [one["tool_call_id"] for one in results] == ["m1", "m2", "m3"]
    assert [(run.round, run.name, run.ok, run.items) for run in one.runs] == [
        (1, SAVE, True, ("fact_1",)),
        (1, SEARCH, True, ("fact_found",)),
        (1, SAVE, True, ("fact_2",)),
    ]


async def test_calls_of_the_client_in_the_same_answer_end_it() -> None:
    first = stream(
        OURS,
        saves("x"),
        calls("get_weather", '{"a":1}', 1, "c1"),
        searches("y", 2, "m2"),
        calls("get_time", "{}", 3, "c2"),
        usage=USED,
    )
    found, one = await played(first)
    assert found == Seen(
        text="Let me see. ",
        calls=(("c1", "get_weather", '{"a":1}'), ("c2", "get_time", "{}")),
        indexes=(0, 1),
        finish=("tool_calls",),
        usage=USED,
        ids=frozenset({"chatcmpl-1"}),
        roles=1,
        dones=1,
    )
    assert (one.tools.saved, one.tools.asked, one.bodies) == (["x"], [], [])
    assert [run.ok for run in one.runs] == [True, False]


async def test_after_so_many_rounds_the_tools_are_gone() -> None:
    more = [stream(saves(f"{n}"), usage=USED) for n in range(2)]
    found, one = await played(*more, AFTER, most=2, own=b'["own"]')
    assert [body["tools"] for body in one.bodies] == [["ours"], ["own"]]
    assert found.text == "Kiel." and found.usage is not None
    assert found.usage["total_tokens"] == 36
    _, one = await played(*more, AFTER, most=2)
    assert ["tools" in body for body in one.bodies] == [True, False]


async def test_a_call_that_was_not_offered_any_more_is_left_out_and_the_answer_has_ended() -> None:
    again = stream(text("so"), saves("y"), usage=USED)
    found, one = await played(stream(saves("x")), again, most=1)
    assert (found.text, found.calls, found.finish, found.dones) == ("so", (), ("stop",), 1)
    assert one.tools.saved == ["x"]
    assert [run.ok for run in one.runs] == [True, False]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_call_that_was_cut_off_is_neither_run_nor_shown(finish: str) -> None:
    found, one = await played(stream(OURS, saves("x"), finish=finish))
    assert (found.text, found.calls, found.finish) == ("Let me see. ", (), (finish,))
    assert not one.tools.whose


async def test_a_stream_without_a_finish_runs_nothing() -> None:
    found, one = await played(stream(OURS, saves("x"), finish=None))
    assert (found.text, found.calls, found.finish, found.dones) == ("Let me see. ", (), (), 1)
    assert not one.tools.whose


async def test_an_error_in_the_stream_passes_and_runs_nothing() -> None:
    raw = stream(OURS, saves("x"), finish=None).removesuffix(DONE)
    found, one = await played(raw + events({"error": {"message": "overloaded"}}))
    assert found.error and not one.tools.whose


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(stream(saves("x"), finish="stop"), id="finish-stop"),
        pytest.param(
            events(
                delta(
                    role="assistant",
                    finish="tool_calls",
                    tool_calls=[{"index": 0, **whole_call("m1", SAVE, '{"text":"x"}')}],
                )
            ),
            id="call-with-the-finish-and-no-done",
        ),
        pytest.param(
            stream(
                [delta(tool_calls=[{"index": 0, "id": "m1", "type": "function"}])],
                [
                    delta(tool_calls=[{"index": 0, "function": {"name": piece}}])
                    for piece in ("mem", "ory_", "save")
                ],
                [delta(tool_calls=[{"index": 0, "function": {"arguments": '{"text":"x"}'}}])],
            ),
            id="name-in-pieces",
        ),
        pytest.param(
            stream([delta(tool_calls=[{"function": {"name": SAVE, "arguments": '{"text":"x"}'}}])]),
            id="no-index-and-no-id",
        ),
        pytest.param(
            stream(saves("x")).replace(b"tool_calls", b"tool\\u005fcalls"), id="escaped-keys"
        ),
        pytest.param(stream(saves("x")).replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(
            events(
                chunk(
                    {
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "tool_calls": [whole_call("m1", SAVE, '{"text":"x"}')],
                        },
                        "finish_reason": "tool_calls",
                    }
                )
            )
            + DONE,
            id="a-message-in-place-of-a-delta",
        ),
    ],
)
async def test_calls_are_known_however_they_are_streamed(first: bytes) -> None:
    found, one = await played(first, AFTER)
    assert one.tools.saved == ["x"]
    assert (found.text, found.calls, found.finish) == ("Kiel.", (), ("stop",))
    (called,) = one.bodies[0]["messages"][1]["tool_calls"]
    assert called["id"] == one.bodies[0]["messages"][2]["tool_call_id"] != ""


async def test_what_upstreams_want_back_within_a_loop_goes_back() -> None:
    first = stream(
        [delta(reasoning_content="hmm")],
        [
            delta(
                tool_calls=[
                    {"index": 0, **whole_call("m1", SAVE, '{"text":"x"}'), "extra": {"s": 1}}
                ]
            )
        ],
    )
    found, one = await played(first, AFTER)
    said = one.bodies[0]["messages"][1]
    assert (said["reasoning_content"], said["tool_calls"][0]["extra"]) == ("hmm", {"s": 1})


async def test_a_further_round_that_fails_breaks_the_stream() -> None:
    one = Played([FakeReply([stream(OURS, saves("x"))]), FakeReply([b"{}"], status=500)])
    with pytest.raises(UpstreamBroken):
        await one.play()
    assert b"Let me see." in b"".join(one.pieces)
    assert b"[DONE]" not in b"".join(one.pieces)
    assert all(reply.closed for reply in one.rounds[:1])


async def test_a_request_refused_with_what_memory_said_is_asked_without_it() -> None:
    one = Played(
        [FakeReply([stream(saves("x"))]), FakeReply([b"{}"], status=400), FakeReply([AFTER])]
    )
    assert seen(await one.play()).text == "Kiel."
    assert one.bodies[1] == {key: SENT[key] for key in ("model", "messages")}


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_a_cut_at_any_byte_changes_nothing(newline: bytes) -> None:
    """At every byte with the usual line ends; with others at those around a line end."""
    first = stream(OURS, saves("x"), text("so. "), searches("y", 1, "m2"), usage=USED)
    raws = [raw.replace(b"\n", newline) for raw in (first, AFTER)]
    whole = Played([FakeReply([raw]) for raw in raws])
    expected = seen(await whole.play())
    assert (expected.text, expected.usage) == ("Let me see. so. Kiel.", TWICE)
    usual = newline == b"\n"
    for at in range(len(raws[0])):
        if not usual and not set(raws[0][max(at - 2, 0) : at + 2]) & set(newline):
            continue
        one = Played([FakeReply([raw[:at], raw[at:]]) for raw in raws])
        assert seen(await one.play()) == expected
        assert one.bodies == whole.bodies


def _cut(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    places = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=20)))
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]


PARTS = st.sampled_from(["text", "save", "search", "own"])


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[str], list[list[bytes]]]:
    """What a first answer holds, in order, and it with two more rounds in any pieces."""
    kinds = draw(st.lists(PARTS, max_size=5))
    newline = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    made: list[list[Json]] = []
    index = 0
    for place, kind in enumerate(kinds):
        if kind == "text":
            made.append(text(f"t{place} "))
            continue
        id, pieces = f"id{place}", draw(st.integers(1, 4))
        if kind == "own":
            name = draw(st.sampled_from(["own", "memory", "m"]))
            made.append(calls(name, json.dumps({"n": place}), index, id, pieces))
        else:
            make = saves if kind == "save" else searches
            made.append(make(f"x{place}", index, id, pieces))
        index += 1
    finish = "tool_calls" if index else "stop"
    raws = [stream(*made, finish=finish, usage=USED), stream(saves("more"), usage=USED), AFTER]
    return kinds, [_cut(draw, raw.replace(b"\n", newline)) for raw in raws]


@given(answers())
@settings(max_examples=100, deadline=None)
async def test_any_answer_in_any_pieces_reads_the_same(
    case: tuple[list[str], list[list[bytes]]],
) -> None:
    kinds, pieces = case
    one = Played([FakeReply(parts) for parts in pieces])
    found = seen(await one.play())
    goes_on = "own" not in kinds and ("save" in kinds or "search" in kinds)
    said = "".join(f"t{n} " for n, kind in enumerate(kinds) if kind == "text")
    own = [n for n, kind in enumerate(kinds) if kind == "own"]
    assert found.text.strip() == (said + ("Kiel." if goes_on else "")).strip()
    called = tuple((id, arguments) for id, _, arguments in found.calls)
    assert called == tuple((f"id{n}", json.dumps({"n": n})) for n in own)
    assert found.indexes == tuple(range(len(own)))
    assert found.finish == (("tool_calls",) if own else ("stop",))
    assert found.usage is not None and found.usage["total_tokens"] == 12 * (3 if goes_on else 1)
    assert (found.roles, found.dones, found.ids) == (1, 1, frozenset({"chatcmpl-1"}))
    saved = [f"x{n}" for n, kind in enumerate(kinds) if kind == "save"]
    assert one.tools.saved == saved + (["more"] if goes_on else [])
    assert len(one.tools.asked) == (0 if own else kinds.count("search"))
