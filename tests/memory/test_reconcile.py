"""Every row of the reconciliation table, and every rule behind it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.planner import is_sufficient
from proxy.memory.prompt.compose import Prompt, PromptRules, compose
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation import reconcile as rules
from proxy.memory.reconciliation.match import History, Intent
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import Log, log, names, recorded, rerendered, talk
from tests.support.talk.simulator import Memory, choice


def decide(h: Log, m: str, intent: Intent | None = None) -> tuple[Plan, Prompt, list[ChatMessage]]:
    said, snapshot = talk(m), h.snapshot()
    plan = reconcile(snapshot, said, intent or Intent(), rerendered)
    return plan, compose(snapshot, plan, said, PromptRules(window=Window())), said


def outcome(h: Log, m: str, intent: Intent | None = None) -> tuple[str, str, str]:
    """What the upstream gets, what is newly recorded of the request, what is superseded."""
    plan, prompt, said = decide(h, m, intent)
    by_id = {entry.card.id: entry.card.digest for entry in h.entries}
    gone = " ".join(by_id[e.card.id] for e in h.entries if e.card.id in plan.superseded)
    return names(prompt.pieces, said), recorded(plan, said), gone


TABLE = [
    pytest.param("u1 a1", "u2", "u1 a1 u2", "u2", "", id="only new messages"),
    pytest.param("u1 a1", "u1 a1 u2", "u1 a1 u2", "u2", "", id="everything"),
    pytest.param("u1 a1 u2 a2", "u2 a2 u3", "u1 a1 u2 a2 u3", "u3", "", id="a window of its own"),
    pytest.param("u1 a1(c1,c2)", "t1:c1 t2:c2", "u1 a1 t1 t2", "t1 t2", "", id="tool results only"),
    pytest.param(
        "u0 a0 u1 a1(c1)", "u1 a1(c1) t1:c1", "u0 a0 u1 a1 t1", "t1", "", id="the running tool loop"
    ),
    pytest.param(
        "u0 a0 u1 a1(c1,c2)",
        "u1 t1:c1 t2:c2",
        "u0 a0 u1 a1 t1 t2",
        "t1 t2",
        "",
        id="the running tool loop without its calls",
    ),
    pytest.param(
        "u1 a1(c1) t1:c1 a2(c2)",
        "u1 t1:c1 t2:c2",
        "u1 a1 t1 a2 t2",
        "t2",
        "",
        id="a later round of it without its calls",
    ),
    pytest.param(
        "u1 a1(c1) t1:c1 a2(c2)",
        "u1 a8 a1(c1) t1:c1 a8 a2(c2) t2:c2",
        "u1 a8 a1 t1 a8 a2 t2",
        "t2",
        "",
        id="thoughts as texts before its calls",
    ),
    pytest.param(
        "u1 a1", "u1 a8 a9 a1 u2", "u1 a8 a9 a1 u2", "u2", "", id="thoughts before an answer"
    ),
    pytest.param("u1 u2 a2(c)", "u1 u2 t:c", "u1 u2 a2 t", "t", "", id="of two questions"),
    pytest.param(
        "u1 a1(c) t1:c a2(c)", "u1 t1:c t2:c", "u1 a1 t1 a2 t2", "t2", "", id="its ids the same"
    ),
    pytest.param(
        "u1 a1(c) u2 a2", "u1 t:c", "u2 a2 u1 a1 t", "t", "", id="of an earlier turn, whole"
    ),
    pytest.param("u1 a1(c) t:c a2", "u1 t:c", "u1 a1 t", "t", "t a2", id="a retry of it"),
    pytest.param("u1 a1 u2 a2", "u1 a1 u2'", "u1 a1 u2'", "u2'", "u2 a2", id="an edit, resending"),
    pytest.param("u1 a1 u2 a2", "u1 a1 u2", "u1 a1 u2", "", "a2", id="regenerate, resending"),
    pytest.param("p q u1 a1", "p q u2", "p q u1 a1 u2", "u2", "", id="few-shot preamble each time"),
    pytest.param("u1 a1", "u1", "u1 a1 u1", "u1", "", id="the same words again"),
    pytest.param("u1 a1", "u1 u2", "u1 a1 u2", "u2", "", id="all questions, no answer"),
    pytest.param(
        "u1 a1(c) t1:c a2 u2 a3", "u1 u2 u3", "u1 a1 t1 a2 u2 a3 u3", "u3", "", id="nor any call"
    ),
    pytest.param("u1 a1 u2 a2", "u1 u2", "u1 a1 u2 a2 u1 u2", "u1 u2", "", id="and none new"),
    pytest.param(
        "u1 a1 u2 a2", "u2 u3", "u1 a1 u2 a2 u2 u3", "u2 u3", "", id="questions, not all of them"
    ),
    pytest.param("u1 a1", "u1 a1* u2", "u1 a1* u2", "u2", "", id="assistant text re-rendered"),
    pytest.param(
        "u1 a1 u2 a2 u3 a3",
        "u1 a1 u3 a3 u4",
        "u1 a1 u2 a2 u3 a3 u4",
        "u4",
        "",
        id="head and tail, middle dropped",
    ),
    pytest.param(
        "u1 a1 u2 a2", "s u2 a2 u3", "u1 a1 s u2 a2 u3", "u3", "", id="its own summary first"
    ),
    pytest.param(
        "u1 a1(c1) t1:c1 a2",
        "u1 a2 u3",
        "u1 a1 t1 a2 u3",
        "u3",
        "",
        id="its history without the tool messages",
    ),
    pytest.param("u1 a1", "u9 a9 u10", "u1 a1 u9 a9 u10", "u9 a9 u10", "", id="nothing in common"),
    pytest.param("u1 a1(c1)", "u2", "u1 u2", "u2", "", id="something else while a call waits"),
]


REORDERED = [
    pytest.param("u1 a1(c1,c2) t2:c2 t1:c1", "", id="and asked again"),
    pytest.param("u1 a1(c1,c2) t1':c1 t2:c2 a2 u3", "u3", id="and one edited"),
    pytest.param("u1 a1(c1,c2) t2':c2 t1':c1 a2 u3", "u3", id="and all edited"),
    pytest.param("u1 a1~k(k1,k2) t2~k:k2 t1~k:k1 a2 u3", "u3", id="under other ids"),
    pytest.param("a1(c1,c2) t2:c2 t1:c1 a2 u3", "u3", id="without what was asked"),
]


@pytest.mark.parametrize(("m", "new"), REORDERED)
def test_results_of_one_round_in_another_order_are_sent_so_and_once(m: str, new: str) -> None:
    h = log("u1 a1(c1,c2) t1:c1 t2:c2 a2")
    sent = " ".join(word.partition("(")[0].partition(":")[0] for word in m.split())
    upstream, recorded_anew, _ = outcome(h, m)
    assert (upstream.removeprefix("u1 "), recorded_anew) == (sent.removeprefix("u1 "), new)


EDITED = [
    pytest.param("u1 a1 u2 a2", "u1' a1 u2 a2 u3", "u1' a1 u2 a2 u3", "u3", "", id="the first"),
    pytest.param("u1 a1 u2 a2", "u1 a1 u2' a2 u3", "u1 a1 u2' a2 u3", "u3", "", id="the second"),
    pytest.param("u1 a1 u2 a2", "u1' a1 u2' a2 u3", "u1' a1 u2' a2 u3", "u3", "", id="all"),
    pytest.param(
        "u1 a1(c1) t1:c1 a2 u3 a3",
        "u1 a1(c1) t1':c1 a2 u3 a3 u4",
        "u1 a1 t1' a2 u3 a3 u4",
        "u4",
        "",
        id="a result",
    ),
    pytest.param("u1 a1 u2 a2", "u1' a1 u2", "u1' a1 u2", "", "a2", id="and asked again behind it"),
    pytest.param("p q u1 a1", "p' q u2", "p' q u1 a1 u2", "u2", "", id="in a preamble"),
]


@pytest.mark.parametrize(("h", "m", "upstream", "new", "gone"), EDITED)
def test_what_was_edited_with_its_answer_kept_goes_in_place_of_what_is_stored(
    h: str, m: str, upstream: str, new: str, gone: str
) -> None:
    assert outcome(log(h), m) == (upstream, new, gone)


@pytest.mark.parametrize(("h", "m", "upstream", "new", "gone"), TABLE)
def test_table(h: str, m: str, upstream: str, new: str, gone: str) -> None:
    assert outcome(log(h), m) == (upstream, new, gone)


STORED = ("", "u1", "u1 a1", "u1 a1(c1)", "u1 a1(c1,c2) t1:c1", "u1 a1(c1) t1:c1 a2", "u1 a1 u2 a2")
SAID = (
    "u3",
    "u1",
    "u3 u4",
    "s u3",
    "u3 s",
    "u9 a9 u10",
    "u3 t1:c1",
    "u1 a1 u3",
    "a9 u3",
    "t1:c1 u3",
)


@pytest.mark.parametrize("history", ["auto", "delta", "full"])
@pytest.mark.parametrize("m", SAID)
@pytest.mark.parametrize("h", STORED)
def test_what_only_goes_on_is_planned_as_all_rules_together_have_it(
    h: str, m: str, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, said, intent = log(h).snapshot(), talk(m), Intent(history=history)
    at_once = reconcile(snapshot, said, intent, rerendered)
    monkeypatch.setattr(rules, "_plan_of_new_turn", lambda log, m: None)
    assert reconcile(snapshot, said, intent, rerendered) == at_once


@pytest.mark.parametrize(
    ("m", "new"),
    [
        ("u0' u1 u2 u3", "u3"),
        ("u0' u1 u2 u3 u4", "u3 u4"),
        ("u0' u1 u3", "u0' u1 u3"),
        ("u0' u1 u2", "u0' u1 u2"),
        ("u1 u2 u3", "u1 u2 u3"),
        ("u0 u1 u2 u3", "u0 u1 u2 u3"),
    ],
)
def test_questions_that_were_said_anew_after_an_edit_are_known_from_there(m: str, new: str) -> None:
    for at_once in ("u2", "u2 u5"):
        upstream, said, gone = outcome(
            log("u0 a0 u1 a1").add("u0' u1 a2").add(f"{at_once} a3"), m.replace("u2", at_once)
        )
        assert said == new.replace("u2", at_once)
        assert (upstream, gone) == (f"u0 a0 u1 a1 u0' u1 a2 {at_once} a3 {said}", "")


@pytest.mark.parametrize(
    ("end", "m", "enough"),
    [
        ("u2 a2 | u3 a3", "u1 u2 u3 u4", False),
        ("u2 a2 | u3 a3", "u1 u2 u3", False),
        ("u2 a2 | u3 a3", "u1 u3 u4", True),
        ("u2 p1 a2 | u3 p1 a3", "u4 p1", True),
        ("u2 a2 | u3 a3", "u3", True),
        ("u9 a9 | u1' u2 a2 | u3 a3", "u1' u2 u3 u4", False),
    ],
)
def test_the_whole_log_is_seen_where_all_that_the_user_has_said_may_be_told(
    end: str, m: str, enough: bool
) -> None:
    made = Log()
    for exchange in end.split(" | "):
        made.add(exchange)
    snapshot = replace(made.snapshot(), whole=False)
    assert is_sufficient(snapshot, talk(m), Intent()) == enough


def test_an_sdks_retry_of_a_recorded_exchange_replaces_it() -> None:
    retry = Intent(retry=True, now=100)
    assert outcome(log("u1 a1"), "u1", retry) == ("u1", "u1", "u1 a1")


def test_a_retry_after_two_minutes_is_the_same_words_again() -> None:
    assert outcome(log("u1 a1"), "u1", Intent(retry=True, now=120)) == ("u1 a1 u1", "u1", "")


def test_an_incomplete_exchange_asked_again_is_replaced() -> None:
    h = log("u1 a1").add("u2 a2", incomplete=True)
    assert outcome(h, "u2") == ("u1 a1 u2", "u2", "u2 a2")
    assert outcome(h, "u1 a1 u2") == ("u1 a1 u2", "u2", "u2 a2")


def broken_off(*behind: str) -> Log:
    h = log("u1 a1").add("u2 a2", incomplete=True)
    for exchange in behind:
        h.add(exchange)
    return h


@pytest.mark.parametrize(
    ("h", "m", "upstream", "new", "gone"),
    [
        pytest.param(broken_off(), "u2 a2+ u3", "u1 a1 u2 a2+ u3", "a2+ u3", "a2", id="the half"),
        pytest.param(
            broken_off("a3"), "u2 a2+ u3", "u1 a1 u2 a2+ u3", "a2+ u3", "a2 a3", id="both halves"
        ),
        pytest.param(
            broken_off("a3", "u4 a4"),
            "u1 a1 u2 a2+ u4 a4 u5",
            "u1 a1 u2 a2+ u4 a4 u5",
            "a2+ u5",
            "a2 a3",
            id="both halves, later turns known",
        ),
        pytest.param(
            broken_off("a3"),
            "u2 a2+",
            "u1 a1 u2 a2+",
            "a2+",
            "a2 a3",
            id="to be gone on from again",
        ),
        pytest.param(
            log("u1 a1").add("a2"),
            "u1 a1+ u2",
            "u1 a1+ u2",
            "a1+ u2",
            "a1 a2",
            id="of a full length",
        ),
        pytest.param(
            log("u1 q a1"), "u1 q+ u2", "u1 q+ u2", "q+ u2", "q a1", id="of a long prefill"
        ),
    ],
)
def test_the_whole_of_an_answer_takes_the_place_of_its_halves(
    h: Log, m: str, upstream: str, new: str, gone: str
) -> None:
    assert outcome(h, m) == (upstream, new, gone)


def test_what_is_told_behind_a_whole_answer_takes_no_place() -> None:
    assert outcome(log("u1 a1 u2 a2"), "u1 a1+ u2 a2 u3") == ("u1 a1+ u2 a2 u3", "u3", "")


def test_the_halves_of_an_answer_each_told_with_more_behind_them_stay() -> None:
    assert outcome(broken_off("a3"), "u2 a2+ a3 u4") == ("u1 a1 u2 a2+ a3 u4", "u4", "")


def test_a_retry_does_not_rewind_again() -> None:
    retry = Intent(retry=True, rewind=1)
    assert outcome(log("u1 a1 u2 a2"), "u2", retry) == ("u1 a1 u2", "u2", "u2 a2")


def test_a_rewind_drops_the_last_turns() -> None:
    assert outcome(log("u1 a1 u2 a2 u3 a3"), "u9", Intent(rewind=2)) == (
        "u1 a1 u9",
        "u9",
        "u2 a2 u3 a3",
    )


def test_a_rewind_of_more_turns_than_there_are_drops_all() -> None:
    assert outcome(log("u1 a1"), "u9", Intent(rewind=5)) == ("u9", "u9", "u1 a1")


def test_tool_results_sent_again_replace_their_exchange() -> None:
    h = log("u1 a1(c1) t1:c1 a2")
    assert outcome(h, "t1:c1") == ("u1 a1 t1", "t1", "t1 a2")


def test_repeated_call_ids_answer_the_latest_unanswered_call() -> None:
    h = log("u1 a1(c) t1:c a2 u2 a3(c)")
    plan, prompt, said = decide(h, "t2:c")
    assert names(prompt.pieces, said) == "u1 a1 t1 a2 u2 a3 t2"
    assert plan.new_messages[0].joins == h.entries[5].card.id


def test_an_edited_answer_is_recorded_in_its_turn_with_its_evidence() -> None:
    h = log("u1 a1 u2 a2")
    plan, prompt, said = decide(h, "u1 a9 u2 a2 u3")
    assert names(prompt.pieces, said) == "u1 a9 u2 a2 u3"
    assert recorded(plan, said) == "a9 u3"
    assert plan.new_messages[0].joins == h.entries[1].card.id
    assert plan.new_messages[0].replaces == h.entries[1].card
    assert plan.superseded == {h.entries[1].card.id}


def test_an_edited_answer_with_nothing_matched_after_it_supersedes_the_rest() -> None:
    assert outcome(log("u1 a1 u2 a2 u3 a3"), "u1 a1 u2 a9 u4") == (
        "u1 a1 u2 a9 u4",
        "a9 u4",
        "a2 u3 a3",
    )


def test_an_edited_answer_founds_a_run_only_if_there_is_no_other() -> None:
    assert outcome(log("u1 a1"), "u1 a9 u2") == ("u1 a9 u2", "a9 u2", "a1")


def test_a_call_of_another_turn_is_answered_after_later_turns() -> None:
    h = log("u1 a1(c1) u2 a2")
    plan, prompt, said = decide(h, "t1:c1")
    assert names(prompt.pieces, said) == "u2 a2 u1 a1 t1"
    assert plan.running_turn == 1


def test_partial_results_go_as_the_client_sent_them() -> None:
    assert outcome(log("u1 a1(c1,c2)"), "t1:c1")[0] == "u1 a1 t1"


@pytest.mark.parametrize("again", ["t2", "t2'"])
def test_a_result_that_comes_again_with_what_was_missing_is_in_the_log_once(again: str) -> None:
    memory = Memory()
    memory.say(talk("u1"), choice("a1", ("c1", "c2")))
    memory.say(talk("t2:c2"), choice("a2"))
    m = talk(f"t1:c1 {again}:c2")
    for retry in (False, True):
        assert memory.say(m, choice("a3"), Intent(retry=retry)) == ["u1", "a1", "t1", again]
        assert memory.log == ["u1", "a1", "a2", "t1", again, "a3"]
    assert memory.say(talk("u2"), choice("a4")) == ["u1", "a1", "t1", again, "a2", "a3", "u2"]


@pytest.mark.parametrize("m", ["t3:c1 t2:c2", "t2:c2 t3:c1"])
def test_results_of_long_ago_stand_behind_their_call_in_whatever_order_they_come(m: str) -> None:
    h = log("u1 a1(c1,c2) t1:c1 a2 u2 a3")
    first, second = (each.partition(":")[0] for each in m.split())
    assert outcome(h, m) == (f"u2 a3 u1 a1 {first} {second}", f"{first} {second}", "t1")


def test_of_calls_whose_ids_repeat_the_results_of_each_round_stay() -> None:
    h = log("u1 a1(c1,c2) t1:c1 t2:c2 a2(c1,c2) t3:c2 a3")
    assert outcome(h, "t4:c1 t5:c2") == ("u1 a1 t1 t2 a2 t4 t5", "t4 t5", "t3")


def test_a_matched_whole_conversation_without_an_answer_replaced_brings_its_last() -> None:
    h = log("u1 a1").add("u2")
    assert outcome(h, "u1 a1 u2")[1] == "u2"


def test_a_prefill_brings_nothing_new() -> None:
    assert outcome(log("u1 a1"), "u1 a1") == ("u1 a1", "", "")


PREFILLED = [
    pytest.param("u1 q a1", "u2 q", "u1 q a1 u2 q", "u2 q", "", id="only what is new"),
    pytest.param("u1 q a1 u2 q a2", "u3 q", "u1 q a1 u2 q a2 u3 q", "u3 q", "", id="and again"),
    pytest.param("u1 q a1", "u1 q", "u1 q a1 u1 q", "u1 q", "", id="the same words again"),
    pytest.param(
        "u1 q a1 u2 q a2", "u1 q", "u1 q a1 u2 q a2 u1 q", "u1 q", "", id="older words again"
    ),
    pytest.param(
        "u1 a1 u2 q a2",
        "u1 q",
        "u1 a1 u2 q a2 u1 q",
        "u1 q",
        "",
        id="behind a question known without",
    ),
    pytest.param("u1 a1", "u1 q", "u1 q", "q", "a1", id="in place of an answer"),
    pytest.param("u1 q a1", "u1 q8 u2 q", "u1 q8 u2 q", "q8 u2 q", "q a1", id="everything"),
    pytest.param("u1 q a1", "u1 a1 u2 q", "u1 a1 u2 q", "a1 u2 q", "q a1", id="repeated by it"),
    pytest.param("u1 q a1", "u1 q8 u1 q", "u1 q8 u1 q", "q8 u1 q", "q a1", id="a question again"),
    pytest.param(
        "u0 a0 u1 q a1", "u1 q8 u2 q", "u0 a0 u1 q8 u2 q", "q8 u2 q", "q a1", id="a window"
    ),
    pytest.param(
        "u0 a0 u1 q a1",
        "u0 a0 u1 q a1 u2 q",
        "u0 a0 u1 q a1 u2 q",
        "u2 q",
        "",
        id="in two messages",
    ),
    pytest.param("u0 a0 u1 q a1", "u0 a0 u1 q", "u0 a0 u1 q", "", "a1", id="regenerate"),
    pytest.param("u0 a0 u1 q a1", "u0 a0 u1' q", "u0 a0 u1' q", "u1' q", "u1 q a1", id="an edit"),
    pytest.param("p q1 u1 q a1", "p q1 u2 q", "p q1 u1 q a1 u2 q", "u2 q", "", id="a preamble"),
    pytest.param(
        "p q1 u1 q a1", "p q1 u1 q", "p q1 u1 q a1 u1 q", "u1 q", "", id="a preamble, and again"
    ),
]


@pytest.mark.parametrize(("h", "m", "upstream", "new", "gone"), PREFILLED)
def test_a_prefill_stands_behind_what_it_was_sent_with(
    h: str, m: str, upstream: str, new: str, gone: str
) -> None:
    assert outcome(log(h), m) == (upstream, new, gone)


@pytest.mark.parametrize("m", ["u1 q", "u0 a0 u1 q"])
def test_a_prefilled_request_made_once_more_is_a_retry(m: str) -> None:
    retried = ("u0 a0 u1 q", "u1 q", "u1 q a1")
    assert outcome(log("u0 a0 u1 q a1"), m, Intent(retry=True)) == retried
    assert outcome(log("u0 a0").add("u1 q a1", incomplete=True), m) == retried


def test_what_takes_the_place_of_a_prefill_and_its_answer_is_of_the_upstream() -> None:
    plan, _, _ = decide(log("u1 q a1"), "u1 q8 u2 q")
    assert [fresh.replaces and fresh.replaces.digest for fresh in plan.new_messages] == [
        "a1",
        None,
        None,
    ]


def log_behind(*exchanges: tuple[str, str]) -> str:
    memory = Memory()
    for asked, answered in exchanges:
        memory.say(talk(asked), choice(answered))
    return " ".join(memory.log)


def test_a_preamble_proves_nothing_where_the_upstream_has_said_the_same() -> None:
    greeted = log_behind(("q u1", "a1"), ("q u2", "q"), ("q u3", "a3"), ("q u4", "a4"))
    assert greeted == "q u1 a1 u2 q u3 a3 u4 a4"
    shown = log_behind(("p q u1", "a1"), ("p q p", "q"), ("p q u3", "a3"), ("p q u4", "a4"))
    assert shown == "p q u1 a1 p q u3 a3 u4 a4"


@pytest.mark.parametrize(
    ("m", "kept"), [("q u1 q u2", "q u1 q u2 a9"), ("q u1 q u3", "q u1 q u3 a9")]
)
def test_what_the_upstream_said_after_the_client_is_evidence_where_both_are_repeated(
    m: str, kept: str
) -> None:
    assert log_behind(("q u1", "q"), ("u2", "a2"), (m, "a9")) == kept


def test_full_sends_exactly_what_came_and_supersedes_the_rest() -> None:
    full = Intent(history="full")
    assert outcome(log("u1 a1 u2 a2"), "u1 a1 u3", full) == ("u1 a1 u3", "u3", "u2 a2")
    assert outcome(log("u1 a1"), "u9", full) == ("u9", "u9", "u1 a1")
    assert outcome(log("u1 a1 u2 a2"), "u2 a2 u3", full) == ("u2 a2 u3", "u3", "")


@pytest.mark.parametrize(
    ("m", "upstream", "new"),
    [
        ("u1 t1:c1", "u1 a1 t1", "t1"),
        ("u1 t1:c1 u2", "u1 a1 t1 u2", "t1 u2"),
        ("u1 u2", "u1 u1 u2", "u1 u2"),
    ],
)
def test_delta_too_knows_the_running_turn_told_without_its_calls(
    m: str, upstream: str, new: str
) -> None:
    told = outcome(log("u1 a1(c1)"), m, Intent(history="delta"))
    assert told == (upstream, new, "")


def test_delta_takes_all_for_new() -> None:
    delta = Intent(history="delta")
    assert outcome(log("u1 a1"), "u1 a1 u2", delta) == ("u1 a1 u1 a1 u2", "u1 a1 u2", "")


def test_new_results_that_answer_a_call_in_the_rest_keep_it() -> None:
    h = log("u1 a1 u2 a2(c1)")
    assert outcome(h, "u1 a1 t1:c1") == ("u1 a1 u2 a2 t1", "t1", "")
