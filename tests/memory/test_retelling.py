"""Clients that show tool calls otherwise than they came: each thing is kept and sent once."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.memory.prompt.window import Window
from tests.support.talk.retelling import (
    TELLINGS,
    Client,
    Json,
    Session,
    as_text,
    call,
    under_new_ids_each_time,
)
from tests.support.upstream.strict import validate

SEEDS = range(40)
CALLED = {"role": "assistant", "content": None, "tool_calls": [call("c2", "k")]}
OTHER = {"role": "assistant", "content": None, "tool_calls": [call("c2", "other")]}
RESULT = {"role": "tool", "tool_call_id": "other", "content": "t3"}
ANSWER = {"role": "assistant", "content": "a9"}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("retries", [False, True], ids=["", "with-retries"])
@pytest.mark.parametrize("telling", TELLINGS)
def test_each_thing_is_sent_once_and_kept_once_over_many_turns(telling: str, retries: bool) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        client = Client(TELLINGS[telling], rng, retries=retries)
        for _ in range(4):
            client.turn(rng.choice([0, 1, 2, 3]))
        assert not client.wrong, (seed, client.wrong[0])
        validate({"model": "m", "messages": client.session.log})


@pytest.mark.parametrize("telling", TELLINGS)
def test_in_a_window_too_nothing_comes_twice_or_out_of_order(telling: str) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        window = Window(max_messages=rng.randint(1, 8), evict_to=0.7)
        client = Client(TELLINGS[telling], rng, Session(window=window))
        for _ in range(3):
            client.turn(rng.choice([0, 1, 2])).new_only()
        assert not client.wrong, (seed, client.wrong[0])


@pytest.mark.parametrize("telling", ["other ids", "new ids each time", "calls as text"])
def test_an_upstream_without_ids_makes_no_difference(telling: str) -> None:
    for seed in SEEDS:
        client = Client(TELLINGS[telling], random.Random(seed), ids=False)
        for steps in (2, 0, 3):
            client.turn(steps)
        assert not client.wrong, (seed, client.wrong[0])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(TELLINGS)), st.integers(0, 3)), max_size=6),
    st.randoms(use_true_random=False),
)
def test_clients_that_send_only_what_is_new_go_on_from_what_others_told(
    turns: list[tuple[str, int]], rng: random.Random
) -> None:
    """One telling a session, for a client's own; between its turns another one sends the new."""
    client = Client(TELLINGS[turns[0][0]] if turns else as_text, rng)
    for _, steps in turns:
        client.turn(steps)
        client.new_only()
        assert not client.wrong


@pytest.mark.parametrize(
    ("telling", "most"), [("other ids", 2), ("new ids each time", 2), ("calls as text", 2)]
)
def test_history_grows_by_a_bounded_number_of_copies(telling: str, most: int) -> None:
    client = Client(TELLINGS[telling], random.Random(1))
    for _ in range(5):
        client.turn(5)
    assert client.session.recorded <= most * len(client.said)


def test_a_call_under_other_ids_takes_the_place_of_the_stored_one_when_it_is_answered() -> None:
    session = Session()
    session.say([user("u1")], CALLED)
    got = session.say([user("u1"), OTHER, RESULT], ANSWER)
    assert got == [user("u1"), OTHER, RESULT]
    assert session.log == [user("u1"), OTHER, RESULT, ANSWER]


def test_what_is_told_under_new_ids_again_is_recorded_no_more() -> None:
    session = Session()
    session.say([user("u1")], CALLED)
    session.say([user("u1"), OTHER, RESULT], ANSWER)
    before = session.recorded
    again = under_new_ids_each_time([user("u1"), OTHER, RESULT, ANSWER], random.Random(1))
    got = session.say([*again, user("u4")], ANSWER)
    assert got == [*again, user("u4")]
    assert session.recorded == before + 2


def test_results_alone_find_the_call_that_the_client_told() -> None:
    session = Session(strict=False)
    session.say([user("u1")], {**CALLED, "tool_calls": [call("c2", "k"), call("c3", "l")]})
    told = {**CALLED, "tool_calls": [call("c2", "own"), call("c3", "other")]}
    half = {"role": "tool", "tool_call_id": "own", "content": "t4"}
    session.say([user("u1"), told, half], {"role": "assistant", "content": ""})
    got = session.say([RESULT], ANSWER)
    assert got == [user("u1"), told, half, RESULT]
    assert [x for x in session.log if x["content"] != ""] == [*got, ANSWER]


def test_a_call_told_as_text_leaves_no_call_that_waits() -> None:
    session = Session()
    session.say([user("u1")], CALLED)
    told = as_text([user("u1"), CALLED, RESULT], random.Random(0))
    assert session.say(told, ANSWER) == told
    assert session.log == [*told, ANSWER]


def test_the_same_call_made_again_is_another_call() -> None:
    """What memory has not seen, a turn that was lost, is not taken for one that looks like it."""
    session = Session()
    result = {"role": "tool", "tool_call_id": "k", "content": "t3"}
    for text, answer in (("u0", ANSWER), ("u1", CALLED)):
        session.say([user(text)], answer)
    session.say([result], {"role": "assistant", "content": "a4"})
    lost: list[Json] = [
        user("u5"),
        OTHER,
        RESULT,
        {"role": "assistant", "content": "a6"},
        user("u7"),
    ]
    sent: list[Json] = [user("u0"), ANSWER, *lost]
    assert session.say(sent, ANSWER) == sent
    assert session.log == [*sent, ANSWER]
