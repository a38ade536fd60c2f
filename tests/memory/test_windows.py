"""Windows of every policy and size over generated logs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.model import LOG_START, Card, Entry, Position, Snapshot
from proxy.memory.prompt.compose import Prompt, PromptRules, compose
from proxy.memory.prompt.window import (
    LOG_END,
    Size,
    Window,
    advance_start,
    size_of,
    turn_start,
    visible_entries,
)
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import log, message, names, rerendered, talk
from tests.support.talk.simulator import Conversation, choice
from tests.support.upstream.strict import validate

SIZES = range(1, 31)
KINDS = ("new only", "everything", "edit", "regenerate", "interrupted")

POLICIES = [
    pytest.param(lambda n: Window(), id="all"),
    pytest.param(lambda n: Window(max_messages=0), id="none"),
    pytest.param(lambda n: Window(max_messages=n, evict_to=0.7), id="message window"),
    pytest.param(lambda n: Window(max_messages=n), id="sliding message window"),
    pytest.param(lambda n: Window(max_messages=n, by_turn=False), id="message window by message"),
    pytest.param(lambda n: Window(max_tokens=10 * n, evict_to=0.7), id="token window"),
    pytest.param(lambda n: Window(max_tokens=10 * n, by_turn=False), id="token window by message"),
]


def on_the_wire(prompt: Prompt, m: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The forwarded list, as OpenAI's JSON, behind the one system message."""
    messages = [_json(m[x]) if isinstance(x, int) else _json(x.card) for x in prompt.pieces]
    return [{"role": "system", "content": "be brief"}, *messages]


def _json(message: ChatMessage | Card) -> dict[str, object]:
    said: dict[str, object] = {"role": message.role, "content": message.digest}
    if message.calls:
        function = {"name": "f", "arguments": "{}"}
        calls = [{"id": id, "type": "function", "function": function} for id in message.calls]
        said["tool_calls"] = calls
    if message.answers is not None:
        said["tool_call_id"] = message.answers
    return said


def asked(snapshot: Snapshot, m: Sequence[ChatMessage], window: Window) -> tuple[Plan, Prompt]:
    plan = reconcile(snapshot, m, Intent(), rerendered)
    return plan, compose(snapshot, plan, m, PromptRules(window=window))


def requests(snapshot: Snapshot) -> list[list[ChatMessage]]:
    """A new message; and, where the newest turn waits for tools, their results."""
    new = [[message("u new", "user")]]
    last = snapshot.log[-1].card if snapshot.log else None
    if last is not None and last.calls:
        new.append([message(f"t {call}", "tool", answers=call) for call in last.calls])
    return new


def generated(seed: int) -> list[Snapshot]:
    """Logs of a conversation after each of its turns, cut also in mid tool loop."""
    made = Conversation(random.Random(seed), KINDS)
    logs = [made.run(1).memory.snapshot for _ in range(10)]
    return [replace(x, log=x.log[: len(x.log) - cut]) for x in logs for cut in range(3)]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_size_makes_prompts_that_a_strict_upstream_takes(policy: object) -> None:
    assert callable(policy)
    for snapshot in [x for seed in range(6) for x in generated(seed)]:
        for m in requests(snapshot):
            for n in SIZES:
                plan, prompt = asked(snapshot, m, policy(n))
                sent = on_the_wire(prompt, m)
                validate({"model": "m", "messages": sent}, one_system=True)
                assert [x for x in prompt.pieces if isinstance(x, int)] == list(range(len(m)))
                assert_bounded(snapshot, plan, prompt, policy(n))


def assert_bounded(snapshot: Snapshot, plan: Plan, prompt: Prompt, window: Window) -> None:
    """No more than the window's limit, but for the turn that goes on."""
    running = [e for e in plan.log if e.position.turn == plan.running_turn]
    over = size_of(x for x in prompt.pieces if not isinstance(x, int))
    assert window.fits(over) or {x for x in prompt.pieces if not isinstance(x, int)} <= {*running}


@pytest.mark.parametrize(
    ("words", "said", "sent"),
    [
        pytest.param(0, "u3", "u1 a1 u2 u3", id="nothing-is-said-beside-it"),
        pytest.param(10, "u3", "u1 a1 u2 a2 u3", id="what-is-said-beside-it-counts"),
        pytest.param(60, "u3", "u2 a2 u3", id="as-much-as-it-takes"),
        pytest.param(10, "t:c1", "u2 a2 t", id="the-request-answers-it"),
    ],
)
def test_a_call_that_nobody_answers_counts_as_it_is_sent(words: int, said: str, sent: str) -> None:
    snapshot = log("u1 a1 u2 a2(c1)").snapshot()
    *before, call = snapshot.log
    call = replace(call, card=replace(call.card, tokens=1000, side_text_tokens=words))
    m = talk(said)
    _, prompt = asked(replace(snapshot, log=(*before, call)), m, Window(max_tokens=80))
    assert names(prompt.pieces, m) == sent


def entries(sizes: Sequence[Sequence[int]]) -> list[Entry]:
    """A log with these turns, of messages of these many tokens."""
    log: list[Entry] = []
    for tokens in sizes:
        turn = len(log) + 1
        for index, each in enumerate(tokens):
            role = "assistant" if index else "user"
            card = Card(id=f"x.{len(log)}", role=role, tokens=each, digest=str(len(log)))
            log.append(Entry(Position(turn, len(log) + 1), card))
    return log


turns = st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=6), max_size=30)


@settings(deadline=None)
@given(turns, st.integers(1, 400), st.floats(0.1, 1.0))
def test_a_window_stays_put_until_it_overflows_and_then_leaves_its_share(
    sizes: list[list[int]], limit: int, evict_to: float
) -> None:
    log, start = entries(sizes), LOG_START
    window = Window(max_tokens=limit, evict_to=evict_to)
    for end in range(len(log)):
        seen = log[: end + 1]
        moved = advance_start(seen, start, window)
        before, after = size_of(visible_entries(seen, start)), size_of(visible_entries(seen, moved))
        if window.fits(before):
            assert moved == start
        else:
            assert moved > start
            assert window.fits(after)
            turns_left = {e.position.turn for e in visible_entries(seen, moved)}
            assert window.fits(after, evict_to) or len(turns_left) == 1
        start = moved


@settings(deadline=None)
@given(turns, st.integers(0, 40))
def test_by_turn_a_window_starts_at_a_user_message(sizes: list[list[int]], limit: int) -> None:
    log = entries(sizes)
    shown = visible_entries(log, advance_start(log, LOG_START, Window(max_messages=limit)))
    assert not shown or shown[0].card.role == "user"


@settings(deadline=None)
@given(turns, st.integers(0, 40))
def test_evict_to_one_is_the_exact_sliding_window(sizes: list[list[int]], limit: int) -> None:
    """By message: as many of the newest as fit, no more and no fewer."""
    log = entries(sizes)
    window = Window(max_messages=limit, by_turn=False)
    assert len(visible_entries(log, advance_start(log, LOG_START, window))) == min(limit, len(log))


def without(log: list[Entry], *seqs: int) -> list[Entry]:
    return [entry for entry in log if entry.position.seq not in seqs]


@pytest.mark.parametrize(
    ("gone", "start", "first"),
    [
        pytest.param((), LOG_START, 1, id="nothing deleted"),
        pytest.param((1,), LOG_START, 4, id="the first question"),
        pytest.param((1, 2), LOG_START, 4, id="and its call"),
        pytest.param((1, 4), LOG_START, 6, id="the first two"),
        pytest.param((4,), LOG_START, 1, id="a later one"),
        pytest.param((4,), Position(4, 4), 6, id="the first of the window"),
        pytest.param((1, 4, 6), LOG_START, None, id="all"),
    ],
)
def test_what_is_left_of_a_turn_does_not_have_the_first_word(
    gone: tuple[int, ...], start: Position, first: int | None
) -> None:
    log = without(entries([[5, 5, 5], [5, 5], [5, 5]]), *gone)
    shown = visible_entries(log, turn_start(log, start))
    assert (shown[0].position.seq if shown else None) == first


def test_the_rest_of_the_running_turn_stays_and_of_one_that_a_summary_tells() -> None:
    log = without(entries([[5, 5, 5], [5, 5]]), 1)
    assert turn_start(log, LOG_START, running=1) == LOG_START
    assert turn_start(log, LOG_START, covered=Position(1, 2)) == LOG_START
    assert turn_start(log, LOG_START, covered=Position(1, 1)) == Position(4, 4)


def test_a_greeting_has_the_first_word_and_so_has_another_choice_of_it() -> None:
    said = [Card(id=f"x.{n}", role="assistant", tokens=5, digest="", choice=n) for n in range(2)]
    for card in said:
        log = [Entry(Position(1, 1 + card.choice), card)]
        assert turn_start(log, LOG_START) == LOG_START


def test_the_running_turn_is_shown_whole_even_alone_over_the_limit() -> None:
    log = entries([[5, 5], [50, 50, 50]])
    window = Window(max_tokens=20)
    start = advance_start(log, LOG_START, window, running=3)
    assert [e.position.turn for e in visible_entries(log, start, 3)] == [3, 3, 3]


def test_a_turn_that_alone_is_too_large_is_evicted_whole() -> None:
    log = entries([[5, 5], [50, 50]])
    assert advance_start(log, LOG_START, Window(max_tokens=20)) == LOG_END


def test_the_newest_turn_stays_if_it_fits_though_not_into_the_share() -> None:
    log = entries([[30], [18]])
    assert advance_start(log, LOG_START, Window(max_tokens=20, evict_to=0.5)) == log[1].position


def test_blank_messages_count_nothing() -> None:
    blank = Card(id="x.0", role="assistant", tokens=7, digest="", blank=True)
    assert size_of([Entry(Position(1, 1), blank)]) == Size(0, 0)


def test_unanswered_calls_are_left_out_with_their_partial_results() -> None:
    made = Conversation(random.Random(0), ["new only"])
    made.memory.say(talk("u1"), choice("a1", ("c1", "c2")))
    made.memory.say(talk("t1:c1"), choice("a2"))
    _, prompt = asked(made.memory.snapshot, talk("u2"), Window())
    assert [x if isinstance(x, int) else x.card.digest for x in prompt.pieces] == ["u1", "a2", 0]
