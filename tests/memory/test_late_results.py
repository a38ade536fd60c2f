"""Something is said while a tool runs; the client tells of its result where that came."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.reconciliation.match import History, Intent
from tests.support.talk.shorthand import message, talk
from tests.support.talk.simulator import Memory, choice

CAME = "u2 a2(c1) u3 a3 t1:c1 a4"


def told_late(before: str = "", intent: Intent = Intent()) -> Memory:  # noqa: B008
    """A session of a client that resends everything; the result comes two messages late."""
    memory, said = Memory(), talk(f"{before} {CAME}")
    for n, each in enumerate(said):
        if each.role == "assistant":
            memory.say(said[:n], choice(each.digest, each.calls), intent)
    return memory


@pytest.mark.parametrize("before", ["", "u1 a1"])
@pytest.mark.parametrize("history", ["auto", "full"])
def test_who_resends_all_as_it_came_has_each_message_once(history: History, before: str) -> None:
    intent = Intent(history=history)
    memory = told_late(before, intent)
    kept = f"{before} u2 a2 t1 a4 u3 a3".split()
    assert memory.log == kept
    m = talk(f"{before} {CAME} u5")
    assert memory.say(m, choice("a5"), intent) == [x.digest for x in m]
    assert memory.log == [*kept, "u5", "a5"]


@pytest.mark.parametrize(
    ("m", "sent", "kept"),
    [
        pytest.param(
            f"{CAME} u5",
            "u1 a1 u2 a2 u3 a3 t1 a4 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5 a9",
            id="window",
        ),
        pytest.param(
            "u3 a3 t1:c1 a4 u5",
            "u1 a1 u3 a3 u2 a2 t1 a4 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5 a9",
            id="window-behind-the-call",
        ),
        pytest.param(
            "t1:c1 a4 u5",
            "u1 a1 u3 a3 u2 a2 t1 a4 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5 a9",
            id="window-of-the-result",
        ),
        pytest.param(
            "u1 a1 u2 a2(c1) t1:c1 a4 u3 a3 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5 a9",
            id="by-turn",
        ),
        pytest.param(
            "u1 a1 u2 a2(c1) u3 a3 t1:c1",
            "u1 a1 u2 a2 u3 a3 t1",
            "u1 a1 u2 a2 t1 a9 u3 a3",
            id="the-late-answer-again",
        ),
        pytest.param(
            "u1 a1 u2 a2(c1) u3", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3 a9", id="the-answer-before-it"
        ),
        pytest.param(
            "u1 a1 u2 a2'(c1) u3 a3 t1:c1 a4 u5",
            "u1 a1 u2 a2' u3 a3 t1 a4 u5",
            "u1 a1 u2 a2 t1 a4 u3 a3 u5 a9",
            id="an-edited-call",
        ),
    ],
)
def test_each_message_is_sent_once_in_the_clients_order(m: str, sent: str, kept: str) -> None:
    memory = told_late("u1 a1")
    assert memory.say(talk(m), choice("a9")) == sent.split()
    assert memory.log == kept.split()


@pytest.mark.parametrize(
    ("before", "m", "sent"),
    [
        pytest.param(
            ["u1 > a1(c1)", "u2 > a2", "u3 > a3"],
            "u1 a1(c1) t1:c1 u3 a3 u4",
            "u1 a1 t1 u2 a2 u3 a3 u4",
            id="what-is-left-out-stands-behind-both",
        ),
        pytest.param(
            ["p1 q1(c1) t1:c1 u1 > a1"],
            "p1 q1(c1) t2:c1 u2",
            "p1 q1 t2 u1 a1 u2",
            id="a-preamble-with-another-result",
        ),
        pytest.param(
            ["p1 q1(c1) t1:c1 u1 > a1"],
            "p1 q1(c1) t2:c1",
            "p1 q1 t2",
            id="a-preamble-alone-has-the-last-word",
        ),
        pytest.param(
            ["u1 > a1(c1,c2)", "t1:c1 u2 > a2"],
            "u1 a1(c1,c2) t1:c1 t2:c2 u2 a2 u3",
            "u1 a1 t1 t2 u2 a2 u3",
            id="one-of-two-came-late",
        ),
        pytest.param(
            ["u1 > a1(c1)", "u2 > a2(c2,c3)"],
            "u1 a1(c1) t1:c1 u3 a4(c2) t2:c2 u4",
            "u1 a1 t1 u3 a4 t2 u4",
            id="a-call-that-waits-is-told-otherwise",
        ),
        pytest.param(
            ["u1 > a1", "u2 > a2(c1,c2)", "u3 u4 u5 > a3"],
            "u1 a1 u2 a4(c1) t1:c1 u5 a3 u6",
            "u1 a1 u2 a4 t1 u3 u4 u5 a3 u6",
            id="in-a-log-without-calls",
        ),
    ],
)
def test_a_result_that_is_told_behind_its_call_is_sent_behind_it(
    before: list[str], m: str, sent: str
) -> None:
    memory = Memory()
    for asked, answer in (step.split(" > ") for step in before):
        (said,) = talk(answer)
        memory.say(talk(asked), choice(said.digest, said.calls))
    assert memory.say(talk(m), choice("a9")) == sent.split()


def test_a_result_behind_one_that_nothing_was_answered_to_is_sent_with_the_others() -> None:
    """What was answered to the first of them stood between, and has no place at the end."""
    memory = Memory()
    memory.say(talk("u1"), choice("a1", ("c1", "c2", "c3")))
    memory.say(talk("t1:c1"), choice("a2"))
    memory.say(talk("t2:c2"), replace(choice("a3"), blank=True))
    assert memory.say(talk("t3:c3"), choice("a4")) == ["u1", "a1", "t1", "t2", "t3"]


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 15), st.sampled_from(["all", "window"]), st.randoms(use_true_random=False))
def test_results_may_come_whenever_they_like(steps: int, view: str, rng: random.Random) -> None:
    memory, said, waiting = Memory(), list[ChatMessage](), list[str]()
    for n in range(steps):
        late = waiting and rng.random() < 0.5
        call = waiting.pop(rng.randrange(len(waiting))) if late else None
        new = message(f"t{n}", "tool", (), call) if call else message(f"u{n}", "user")
        m = [*said, new]
        if view == "window":
            cut = rng.randrange(len(m))
            m = m[cut:] if any(x.role == "assistant" for x in m[cut:]) else m
        calls = tuple(f"c{n}_{k}" for k in range(rng.choice([0, 0, 1, 2])))
        sent = memory.say(m, choice(f"a{n}", calls))
        assert [name for name in sent if name in {x.digest for x in m}] == [x.digest for x in m]
        said += [new, message(f"a{n}", "assistant", calls)]
        waiting += calls
        assert sorted(memory.log) == sorted(x.digest for x in said)
