"""The steps between the looks at the store: what leads somewhere is followed, nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proxy.chat.message import typed_text_of
from proxy.memory.archive import Message
from proxy.memory.model import SessionKey
from proxy.recall.index import ROW_SIZE, Rows
from proxy.recall.indexing.state import read_state
from proxy.recall.pipeline import Selection, Shortlist, match_terms, rank, select
from proxy.recall.query.query import RecallOptions, RecallQuery
from proxy.recall.query.question import read_question
from proxy.recall.ranking.packing import mark_check
from proxy.recall.recollection import Messages, resolve
from tests.support.store.passages import KAI, TENANT, Memory, said

ASKED = "Is my boat red?"
KEY = SessionKey(TENANT, "a")
NOW = 5000.0


def wanted(**fields: Any) -> RecallQuery:
    known: dict[str, Any] = {"key": KEY, "user": "kai", "session_owner": None, "text": ASKED}
    known |= {"budget": 500, "count": len, "options": RecallOptions(min_score=0)}
    return RecallQuery(**(known | fields))


@pytest.fixture
async def told(remembering: Memory) -> Memory:
    await remembering.commit("a", said("x1", "My boat is red.", "A red boat!", user="kai"))
    await remembering.commit("b", said("x2", "The boat has red oars.", user="kai"))
    return remembering


async def begun(told: Memory, asks: RecallQuery) -> tuple[Selection, Rows]:
    question = read_question(asks.text, (), NOW)
    lookup = await told.store.lookup(KAI, question.terms, 100, session=asks.key.session)
    state = read_state(lookup.state)
    assert state is not None
    selection = select(asks, match_terms(question, lookup, state), lookup, state, NOW)
    return selection, await told.store.rows(KAI, selection.all_numbers.tolist())


async def looked_up(told: Memory, asks: RecallQuery) -> Shortlist:
    return rank(*await begun(told, asks))


async def messages(told: Memory, shortlist: Shortlist) -> Messages:
    return await told.store.passages(TENANT, "kai", shortlist.seqs())


async def test_what_matched_is_looked_up_by_session_and_seq(told: Memory) -> None:
    assert (await looked_up(told, wanted())).seqs() == {"a": {1, 2}, "b": {1}}


@pytest.mark.parametrize(
    ("fields", "seqs"),
    [
        ({"shown_seqs": frozenset({1})}, {"a": {2}, "b": {1}}),
        ({"shown_seqs": frozenset({1, 2})}, {"b": {1}}),
        ({"user": None, "session_owner": "kai"}, {"a": {1, 2}}),
        ({"options": RecallOptions(min_score=0, own_session_only=True)}, {"a": {1, 2}}),
        ({"options": RecallOptions(min_score=0, roles=("user",))}, {"a": {1}, "b": {1}}),
        ({"options": RecallOptions(min_score=0, roles=("assistant",))}, {"a": {2}}),
        ({"text": "thanks!"}, {}),
    ],
)
async def test_what_is_not_wanted_is_not_looked_up(
    told: Memory, fields: dict[str, Any], seqs: dict[str, set[int]]
) -> None:
    assert (await looked_up(told, wanted(**fields))).seqs() == seqs


async def test_rows_that_lead_nowhere_are_not_followed(told: Memory) -> None:
    selection, rows = await begun(told, wanted())
    without_name = replace(rows, sessions={n: s for n, s in rows.sessions.items() if s != "a"})
    assert rank(selection, without_name).seqs() == {"b": {1}}
    nothing = Rows(bytes(len(rows.data)), rows.sessions)
    assert len(rows.data) % ROW_SIZE == 0 and rank(selection, nothing).seqs() == {}


async def test_a_message_is_taken_only_if_it_is_the_one_that_was_indexed(told: Memory) -> None:
    shortlist = await looked_up(told, wanted())
    there = dict(await messages(told, shortlist))
    whole = resolve(shortlist, there, typed_text_of)
    assert {one.message for one in whole.passages} == {"x1.0", "x1.1", "x2.0"}
    message = there["a", 1]
    other = Message(1, replace_id(message, "x9.0"), "active", message.wire)
    found = resolve(shortlist, {**there, ("a", 1): other}, typed_text_of)
    assert mark_check("x9.0") != mark_check("x1.0")
    assert {one.message for one in found.passages} == {"x1.1", "x2.0"}
    assert not resolve(shortlist, {}, typed_text_of)


def replace_id(message: Message, id: str) -> Any:
    return type(message.card)(
        id=id,
        role=message.card.role,
        tokens=message.card.tokens,
        digest=message.card.digest,
        created_at=message.card.created_at,
    )


async def test_what_history_says_now_is_what_is_recalled(told: Memory) -> None:
    """A message that was edited in place keeps its id; its old text is nowhere any more."""
    shortlist = await looked_up(told, wanted())
    there = dict(await messages(told, shortlist))
    edited = Message(1, there["a", 1].card, "active", b'{"role":"user","content":"A cat."}')
    found = resolve(shortlist, {("a", 1): edited}, typed_text_of)
    assert [one.text for one in found.passages] == ["A cat."]


async def test_what_is_pinned_is_not_recalled_a_second_time(remembering: Memory) -> None:
    wish = "Always answer in French about boats."
    await remembering.commit("b", said("x1", wish, user="kai"))
    asks = wanted(text="What about boats, always in French?")
    shortlist = await looked_up(remembering, asks)
    found = resolve(shortlist, await messages(remembering, shortlist), typed_text_of)
    assert [one.text for one in found.standing] == [wish]
    assert found.passages == ()


@pytest.mark.parametrize(
    ("between", "session", "holds"),
    [([], "b", False), (["How do I cook rice?", "In water."], "b", True), ([], "c", True)],
)
async def test_forget_that_is_about_what_was_said_right_before(
    remembering: Memory, between: list[str], session: str, holds: bool
) -> None:
    wish = "Always answer in French."
    await remembering.commit("b", said("x1", wish, "Oui.", *between, user="kai"))
    await remembering.commit(session, said("x2", "Forget that.", user="kai"))
    shortlist = await looked_up(remembering, wanted())
    found = resolve(shortlist, await messages(remembering, shortlist), typed_text_of)
    assert [one.text for one in found.standing] == [wish] * holds
