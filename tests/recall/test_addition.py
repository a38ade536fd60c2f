"""From messages to what is added to an index."""

from __future__ import annotations

import json
from typing import Any

from proxy.chat.message import typed_text_of
from proxy.memory.archive import Details, Message, Session
from proxy.recall.index import IndexBatch, IndexLookup, IndexMark
from proxy.recall.indexing.state import Addition, State, read_state
from proxy.recall.ranking.packing import (
    FILLER,
    FILLS_SLOT,
    NAMES_DAY,
    SAID_BY_USER,
    STANDING,
    check_of,
    mark_check,
    read_postings,
    read_rows,
)
from tests.support.store.commits import card

SESSION = Session("s", "kai", 0, 0, 0, 0.0, 0.0, Details(ttl=60))


WHO = ((7, "user"), (8, "assistant"))


def message(seq: int, role: str, text: str, **fields: object) -> Message:
    wire = json.dumps({"role": role, "content": text}).encode()
    known = {"tokens": 4, "created_at": 1000.9} | fields
    return Message(seq, card(f"x{seq}", 0, role, **known), "active", wire)


def batch(
    *found: Message,
    lookup: IndexLookup = IndexLookup(),  # noqa: B008
    state: State = State(),  # noqa: B008
) -> IndexBatch:
    return Addition(lookup, state, SESSION, found, typed_text_of).batch()


def test_a_message_becomes_a_row_that_leads_back_to_it() -> None:
    made = batch(message(7, "user", "The boat is red."), message(8, "assistant", "Fine boat!"))
    rows = read_rows(made.rows)
    assert rows["seq"].tolist() == [7, 8]
    checks = [check_of(card(f"x{seq}", 0, role)) for seq, role in WHO]
    assert rows["check"].tolist() == checks
    assert rows["time"].tolist() == [1000, 1000]
    assert rows["tokens"].tolist() == [4, 4]
    assert rows["flags"].tolist() == [SAID_BY_USER, 0]
    assert made.mark == IndexMark(1, 8, mark_check("x8.0"))
    assert (made.session, made.ttl, made.first) == ("s", 60, 0)


def test_a_word_leads_to_every_passage_that_holds_it() -> None:
    made = batch(message(1, "user", "A boat, a boat!"), message(2, "assistant", "Which boats?"))
    found = [read_postings(data) for data in made.postings.values()]
    assert [(0, 2), (1, 1)] in [
        list(zip(each["passage"].tolist(), each["frequency"].tolist(), strict=True))
        for each in found
    ]
    assert not any(b"boat" in key for key in made.postings)


def test_passages_are_numbered_behind_those_that_are_there() -> None:
    old = State(passages=5, length=50, sessions=3)
    made = batch(message(1, "user", "A red boat."), lookup=IndexLookup(revision=9), state=old)
    state = read_state(made.state)
    assert state is not None
    assert (made.revision, made.first, made.mark) == (9, 5, IndexMark(4, 1, mark_check("x1.0")))
    assert (state.passages, state.sessions) == (6, 4)
    assert state.length > 50


def test_a_session_keeps_its_number() -> None:
    lookup = IndexLookup(mark=IndexMark(1, 6, 0))
    made = batch(message(7, "user", "A red boat."), lookup=lookup, state=State(sessions=3))
    state = read_state(made.state)
    assert made.mark is not None and made.mark.number == 1
    assert read_rows(made.rows)["session"].tolist() == [1]
    assert state is not None and state.sessions == 3


def test_what_is_nobodys_memory_is_passed_over_and_marked_as_seen() -> None:
    made = batch(
        message(1, "system", "Say boat."),
        message(2, "developer", "Say boat."),
        message(3, "tool", "boat", answers="c1"),
        message(4, "function", "boat", answers="function:f"),
        message(5, "user", " ", blank=True),
        message(6, "assistant", "", blank=True),
    )
    assert (made.rows, made.postings) == (b"", {})
    assert made.mark == IndexMark(1, 6, mark_check("x6.0"))


def test_wishes_are_the_users_own() -> None:
    wish = "Always answer in French."
    made = batch(message(1, "assistant", wish), message(2, "user", wish), message(3, "user", "red"))
    state = read_state(made.state)
    assert state is not None and state.standing == (1,)
    assert read_rows(made.rows)["flags"].tolist() == [0, SAID_BY_USER | STANDING, SAID_BY_USER]


def flags(*found: Message, **given: Any) -> list[int]:
    addition = Addition(IndexLookup(), State(), SESSION, found, typed_text_of, **given)
    return list(read_rows(addition.batch().rows)["flags"].tolist())


def test_a_day_told_by_the_own_one_is_noticed_where_that_is_known() -> None:
    said = "I went there yesterday."
    first, second = message(1, "user", said), message(3, "user", said, created_at=2000.0)
    answer = message(2, "assistant", said)
    assert flags(first, answer, second) == [SAID_BY_USER | NAMES_DAY, 0, SAID_BY_USER | NAMES_DAY]
    # What came together was not said together.
    together = message(3, "user", said)
    assert flags(first, answer, together) == [SAID_BY_USER, 0, SAID_BY_USER]
    assert flags(first, previous_time=1000.9) == [SAID_BY_USER]
    assert flags(first, is_edit=True)[2:3] == [SAID_BY_USER]


def test_what_has_one_value_at_a_time_is_noticed() -> None:
    said = "My dog is called Rex."
    both = message(1, "user", said), message(2, "assistant", said)
    assert flags(*both) == [SAID_BY_USER | FILLS_SLOT, 0]


def test_a_message_without_text_is_passed_over() -> None:
    odd = Message(1, card("x1", 0), "active", b"not JSON")
    calls = Message(2, card("x2", 0), "active", b'{"role": "assistant", "tool_calls": [{}]}')
    made = batch(odd, calls, message(3, "user", "A red boat."))
    assert read_rows(made.rows)["seq"].tolist() == [3]


def test_numbers_that_fit_no_field_are_bounded() -> None:
    made = batch(message(1, "user", "boat " * 1000, tokens=10**6, created_at=-5.0))
    rows = read_rows(made.rows)
    assert (rows["tokens"][0], rows["time"][0]) == (65_535, 0)
    assert (
        max(int(read_postings(data)["frequency"].max()) for data in made.postings.values()) == 255
    )


def test_what_a_message_is_found_by_does_not_depend_on_what_is_indexed_with_it() -> None:
    said = (message(1, "user", "Das ist nicht so gut."), message(2, "user", "Wanderungen"))
    terms = [{*made.postings} for made in map(batch, said)]
    assert {*batch(*said).postings} == set.union(*terms)


def test_politeness_is_flagged() -> None:
    made = batch(
        message(1, "user", "We sail on Friday."), message(2, "assistant", "Great, thanks!")
    )
    assert read_rows(made.rows)["flags"].tolist() == [SAID_BY_USER, FILLER]
