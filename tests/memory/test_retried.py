"""What an SDK calls a retry: of the last exchange, or of an attempt that was never recorded."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.model import Entry, Position
from proxy.memory.prompt.compose import PromptRules, compose
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import Log, log, message, names, recorded, rerendered, talk

RECORDED_AT = 10.0
"""When the last exchange was.  Results ``t~1`` and ``t~2`` differ in what they answer alone."""

FAILED = Intent(now=30)
"""Its first attempt is known to have failed."""
UNKNOWN = Intent(retry=True, now=30)
ONLY_NEW = Intent(history="delta", now=30)

REPEATS_NOTHING = [
    pytest.param("u1 a1 u a2", "u", FAILED, "u1 a1 u a2 u", "u", "", id="words"),
    pytest.param("u1 a1 u a2", "u", ONLY_NEW, "u1 a1 u a2 u", "u", "", id="words alone"),
    pytest.param(
        "u1 a1(c1) t~1:c1 a2(c2)", "t~2:c2", UNKNOWN, "u1 a1 t~1 a2 t~2", "t~2", "", id="a result"
    ),
    pytest.param(
        "u1 a1(c) t~1:c a2(c)", "t~1:c", FAILED, "u1 a1 t~1 a2 t~1", "t~1", "", id="of the same id"
    ),
    pytest.param(
        "u1 a1 u a2", "u1 a1 u a2 u", UNKNOWN, "u1 a1 u a2 u", "u", "", id="all is resent"
    ),
    pytest.param("u1 a1 u a2", "a1 u a2 u", UNKNOWN, "u1 a1 u a2 u", "u", "", id="a window"),
    pytest.param(
        "u1 a1(c1) t~1:c1 a2(c2)",
        "u1 a1~k(k1) t~1:k1 a2~k(k2) t~2:k2",
        UNKNOWN,
        "u1 a1~k t~1 a2~k t~2",
        "a2~k t~2",
        "a2",
        id="all is resent under other ids",
    ),
]

REPEATS_THE_LAST = [
    pytest.param("u1 a1 u a2", "u", UNKNOWN, "u1 a1 u", "u", "u a2", id="words"),
    pytest.param("u1 a1 u a2", "u1 a1 u", UNKNOWN, "u1 a1 u", "u", "u a2", id="all is resent"),
    pytest.param("u a1 u a1", "u a1 u", UNKNOWN, "u a1 u", "u", "u a1", id="said and answered so"),
    pytest.param(
        "u1 a1(c1) t~1:c1 a2(c2)", "t~1:c1", UNKNOWN, "u1 a1 t~1", "t~1", "t~1 a2", id="a result"
    ),
    pytest.param(
        "u1 a1(c1) t~1:c1 a2",
        "u1 a1~k(k1) t~k:k1",
        UNKNOWN,
        "u1 a1~k t~k",
        "a1~k t~k",
        "a1 t~1 a2",
        id="a result under another id",
    ),
]


def outcome(h: Log, m: str, intent: Intent) -> tuple[str, str, str]:
    """What the upstream gets, what is recorded of the request, what is superseded."""
    return outcome_of(h, talk(m), intent)


def outcome_of(h: Log, said: list[ChatMessage], intent: Intent) -> tuple[str, str, str]:
    snapshot = h.snapshot()
    plan = reconcile(snapshot, said, intent, rerendered)
    sent = names(compose(snapshot, plan, said, PromptRules(window=Window())).pieces, said)
    gone = [e.card.digest for e in h.entries if e.card.id in plan.superseded]
    return sent, recorded(plan, said), " ".join(gone)


def at(h: str) -> Log:
    stored = log(h)
    assert stored.last is not None
    stored.last = replace(stored.last, created_at=RECORDED_AT)
    return stored


@pytest.mark.parametrize(("h", "m", "intent", "upstream", "new", "gone"), REPEATS_NOTHING)
def test_a_retry_of_an_attempt_that_failed_leaves_the_last_exchange(
    h: str, m: str, intent: Intent, upstream: str, new: str, gone: str
) -> None:
    assert outcome(at(h), m, intent) == (upstream, new, gone)


@pytest.mark.parametrize(("h", "m", "intent", "upstream", "new", "gone"), REPEATS_THE_LAST)
def test_a_retry_of_the_last_exchange_replaces_it(
    h: str, m: str, intent: Intent, upstream: str, new: str, gone: str
) -> None:
    assert outcome(at(h), m, intent) == (upstream, new, gone)


def test_the_same_result_of_another_call_leaves_what_was_broken_off() -> None:
    h = log("u1 a1(c1,c2)").add("t~1:c1 a2", incomplete=True)
    assert outcome(h, "t~2:c2", Intent()) == ("u1 a1 t~1 t~2", "t~2", "")


def test_a_retry_without_a_key_leaves_what_has_one() -> None:
    h = at("u1 a1 u a2")
    assert h.last is not None
    h.last = replace(h.last, has_idempotency_key=True)
    assert outcome(h, "u", UNKNOWN) == ("u1 a1 u a2 u", "u", "")


def test_a_retry_of_nothing_replaces_the_answer_to_it() -> None:
    h = at("u1 a1").add("a2", at=RECORDED_AT)
    nothing = [message("", "user", blank=True)]
    assert outcome_of(h, nothing, UNKNOWN)[1:] == ("", "a2")
    assert outcome_of(h, nothing, FAILED)[1:] == ("", "")
    assert outcome(h, "u2", UNKNOWN)[1:] == ("u2", "")
    assert outcome_of(at("u1 a1"), nothing, UNKNOWN)[1:] == ("", "")


# Results that come again


def test_the_result_of_an_older_round_begins_its_turn_anew_from_there() -> None:
    h = log("u1 a1(c1) t1:c1 a2(c2) t2:c2 a3 u2 a4")
    assert outcome(h, "t1:c1", Intent()) == ("u2 a4 u1 a1 t1", "t1", "t1 a2 t2 a3")


def test_the_result_of_another_call_of_the_same_message_stays_where_one_comes_again() -> None:
    h = log("u1 a1(c1,c2)").add("t1:c1 a2").add("t2:c2 a3")
    assert outcome(h, "t1:c1", Intent())[1:] == ("t1", "t1 a2")


# Going on from an answer


def of_words(h: Log, word: str) -> str:
    return next(e.card.id for e in h.entries if e.card.digest == word)


@pytest.mark.parametrize(
    ("h", "on", "m", "upstream", "gone"),
    [
        pytest.param("u1 a1 u2 a2", "a1", "u3", "u1 a1 u3", "u2 a2", id="of an earlier turn"),
        pytest.param("u1 a1 u2 a2", "a2", "u3", "u1 a1 u2 a2 u3", "", id="the newest"),
        pytest.param("u1 a1 u a2", "a2", "u", "u1 a1 u a2 u", "", id="the same words again"),
        pytest.param(
            "u1 a1(c1) t1:c1 a2(c2) t2:c2 a3 u2 a4",
            "a1",
            "t9:c1",
            "u1 a1 t9",
            "t1 a2 t2 a3 u2 a4",
            id="a call",
        ),
        pytest.param(
            "u1 a1(c1) t1:c1 a2(c2) t2:c2 a3",
            "a2",
            "u2",
            "u1 a1 t1 u2",
            "t2 a3",
            id="a call that stays unanswered",
        ),
        pytest.param(
            "u1 a1(c1) t1:c1 a2", "a1", "t9:c1 u2", "u1 a1 t9 u2", "t1 a2", id="a call and more"
        ),
    ],
)
def test_what_came_behind_the_answer_that_is_gone_on_from_is_taken_back(
    h: str, on: str, m: str, upstream: str, gone: str
) -> None:
    stored = at(h)
    for intent in (Intent(now=30), UNKNOWN, Intent(history="delta", now=30)):
        intent = replace(intent, continued_answer=of_words(stored, on))
        assert outcome(stored, m, intent) == (upstream, m.replace(":c1", ""), gone)


def test_what_was_said_before_it_in_another_turn_stays() -> None:
    """A late result, of a call that something else was said behind."""
    h = log("u1 a1(c1)").add("u2 a2")
    late = log("t1:c1 a3").entries
    h.entries += [
        Entry(Position(1, 5 + n), replace(e.card, id=f"late.{n}")) for n, e in enumerate(late)
    ]
    h.add("u3 a4")
    stored = sorted(h.entries, key=lambda e: e.position)
    h.entries[:] = stored
    going_on = Intent(continued_answer="late.1")
    assert outcome(h, "u4", going_on) == ("u1 a1 t1 a3 u2 a2 u4", "u4", "u3 a4")


def test_a_broken_off_turn_counts_among_those_that_are_taken_back() -> None:
    h = log("u1 a1 u2 a2").add("u3 a3", incomplete=True)
    assert outcome(h, "u3", Intent(rewind=2)) == ("u1 a1 u3", "u3", "u2 a2 u3 a3")
    assert outcome(h, "u3", Intent(rewind=2, retry=True)) == ("u1 a1 u2 a2 u3", "u3", "u3 a3")
