"""Exchanges that found no snapshot: kept as JSON, planned when the store is back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.memory.model import Commit, LoadOptions, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.commit import (
    MAX_PARTS_BYTES,
    Deferred,
    ExchangeMeta,
    SpooledMessage,
    build_commit,
    pending_record,
    plan_deferred,
    spooled_messages,
)
from proxy.process.threads import SharedThreads
from tests.support.faulty import FaultyStore
from tests.support.store.commits import exchange
from tests.support.store.recording import KEY, deferred, said, texts

BEFORE, BEGAN, AFTER = 900.0, 1000.0, 1100.0


async def settled(store: FaultyStore, what: Deferred, key: SessionKey = KEY) -> Commit:
    """Planned over what the store has now."""
    snapshot = await store.load(key, what.load_options)
    return await plan_deferred(Planner(store), key, snapshot, what, len)


async def told(store: FaultyStore, id: str, *pairs: tuple[str, str], at: float) -> None:
    """Let the store have turns that were committed at a time, one exchange each."""
    for number, (question, answer) in enumerate(pairs):
        what = deferred(f"{id}-{number}", said(question), reply=answer, at=at)
        assert await store.commit(KEY, await settled(store, what)) == "recorded"


async def log(store: FaultyStore) -> Snapshot:
    return await store.load(KEY, LoadOptions(profile="default", whole=True))


TEXT = st.text(max_size=8)
PLAIN = st.builds(
    SpooledMessage,
    role=st.sampled_from(["user", "assistant", "tool"]),
    digest=TEXT,
    calls=st.lists(TEXT, max_size=2).map(tuple),
    answers=st.none() | TEXT,
    text=TEXT,
    blank=st.booleans(),
    record=st.binary(max_size=9),
)
UTTERANCES = PLAIN | st.builds(
    msgspec.structs.replace, PLAIN, parts=st.lists(st.tuples(PLAIN, PLAIN), max_size=2).map(tuple)
)
CHOICES = st.builds(
    Choice,
    index=st.integers(0, 3),
    body=st.binary(max_size=9),
    wire=st.none() | st.binary(max_size=9),
    calls=st.lists(TEXT, max_size=2).map(tuple),
    digest=TEXT,
    blank=st.booleans(),
    complete=st.booleans(),
)


@settings(max_examples=30, deadline=None)
@given(
    messages=st.lists(UTTERANCES, max_size=3),
    choices=st.lists(CHOICES, max_size=2),
    rewind=st.integers(0, 3),
    history=st.sampled_from(["auto", "full", "delta"]),
    bound=st.none() | st.integers(0, 9),
)
def test_nothing_is_lost_on_the_way_through_the_spool(
    messages: Sequence[SpooledMessage],
    choices: Sequence[Choice],
    rewind: int,
    history: str,
    bound: int,
) -> None:
    what = Deferred(
        messages=tuple(messages),
        answers=tuple(choices),
        meta=ExchangeMeta(exchange=exchange("x1"), user="kai", system=b"\xff", ttl=0, choices=3),
        intent=Intent(history=history, rewind=rewind, retry=True, now=1.5),  # type: ignore[arg-type]
        window=Window(max_tokens=bound, evict_to=0.5, by_turn=False),
    )
    assert msgspec.json.decode(msgspec.json.encode(what), type=Deferred) == what


def test_what_an_older_release_has_put_there_is_read() -> None:
    old = (
        b'{"said":[{"role":"user","digest":"user-hi","calls":[],"answers":null,"text":"",'
        b'"blank":false,"record":"aGk=","shape":""}],"answers":[{"index":0,"body":"eWVz",'
        b'"wire":null,"calls":[],"digest":"d","blank":false,"complete":true,"shape":"",'
        b'"told":null}],"occasion":{"exchange":{"id":"x1","profile":"","started_at":1.0,'
        b'"created_at":2.0},"user":"kai"},"intent":{},"window":{}}'
    )
    what = msgspec.json.decode(old, type=Deferred)
    assert what.messages[0].message.record == b"hi"
    assert what.answers[0].body == b"yes"
    assert what.meta.user == "kai"


def test_only_answers_keep_their_text_twice() -> None:
    """The text is for telling re-rendered answers; of questions the record is enough."""
    assert SpooledMessage.of(said("long question")).text == ""
    assert SpooledMessage.of(said("long answer", "assistant")).text == "long answer"
    assert SpooledMessage.of(said("long question")).record == said("long question").record


def side_by_side(*texts: str) -> ChatMessage:
    parts = [[said(text, "assistant")] for text in texts]
    return msgspec.structs.replace(said("".join(texts), "assistant"), splitter=lambda _: parts)


async def test_answers_side_by_side_are_those_that_are_stored() -> None:
    store = FaultyStore()
    first = deferred("x", said("one"), said("1", "assistant"), reply="2", at=BEFORE)
    await store.commit(KEY, await settled(store, first))
    late = deferred("late", said("one"), side_by_side("1", "2"), said("three"), reply="3")
    await store.commit(KEY, await settled(store, late))
    assert texts(await log(store)) == ["one", "1", "2", "three", "3"]


def test_of_many_long_answers_side_by_side_the_last_ones_are_kept_as_one() -> None:
    long, short = side_by_side("a" * (MAX_PARTS_BYTES // 2), "b"), side_by_side("a", "b")
    alone = side_by_side("a" * (MAX_PARTS_BYTES // 2))
    kept = [len(each.parts) for each in spooled_messages([alone, long, long, short, alone])]
    assert kept == [0, 2, 0, 2, 0]
    again = [each.message for each in spooled_messages([long, long])]
    assert [*spooled_messages(again)] == [*spooled_messages([long, long])]


async def test_it_becomes_the_commit_that_it_would_have_been() -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), ("two", "2"), at=BEFORE)
    what = deferred("late", said("one"), said("1", "assistant"), said("two"), said("three"))
    snapshot = await log(store)
    rules = PromptRules(window=what.window, inject=False)
    planner = Planner(store)
    messages = [one.message for one in what.messages]
    planned = await planner.plan(KEY, snapshot, messages, what.intent, rules)
    pending = pending_record(planned.plan, planned.prompt, messages, snapshot)
    at_once = build_commit(pending, what.answers, what.meta, lambda raw: len(raw))
    assert await settled(store, what) == msgspec.structs.replace(at_once, planned_for=None)


async def test_a_client_that_resends_is_recorded_once_for_each_message() -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), at=BEFORE)
    what = deferred("late", said("one"), said("1", "assistant"), said("two"), reply="2")
    await store.commit(KEY, await settled(store, what))
    assert texts(await log(store)) == ["one", "1", "two", "2"]


async def test_an_edit_supersedes_what_its_client_had_seen() -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), ("two", "2"), at=BEFORE)
    edit = deferred("late", said("one"), said("1", "assistant"), said("zwei"), reply="II", at=BEGAN)
    await store.commit(KEY, await settled(store, edit))
    assert texts(await log(store)) == ["one", "1", "zwei", "II"]


@pytest.mark.parametrize(
    ("committed", "left"),
    [
        pytest.param(BEFORE, ["one", "1", "zwei", "II"], id="seen"),
        pytest.param(AFTER, ["one", "1", "two", "2", "zwei", "II"], id="not-seen"),
    ],
)
async def test_what_was_committed_later_is_not_superseded(
    committed: float, left: list[str]
) -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), at=BEFORE)
    await told(store, "y", ("two", "2"), at=committed)
    edit = deferred("late", said("one"), said("1", "assistant"), said("zwei"), reply="II", at=BEGAN)
    await store.commit(KEY, await settled(store, edit))
    assert texts(await log(store)) == left


async def test_an_attempt_that_was_broken_off_goes_though_it_was_committed_later() -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), at=BEFORE)
    first = await settled(store, deferred("first", said("two"), reply="t", at=BEFORE))
    off = msgspec.structs.replace(first.exchange, incomplete=True, created_at=AFTER)
    cards = [msgspec.structs.replace(each.card, created_at=AFTER) for each in first.drafts]
    drafts = [
        msgspec.structs.replace(draft, card=card)
        for draft, card in zip(first.drafts, cards, strict=True)
    ]
    await store.commit(KEY, msgspec.structs.replace(first, exchange=off, drafts=tuple(drafts)))
    await store.commit(KEY, await settled(store, deferred("again", said("two"), reply="2")))
    assert texts(await log(store)) == ["one", "1", "two", "2"]


async def test_a_rewind_drops_the_last_turns_that_its_client_had_seen() -> None:
    store = FaultyStore()
    await told(store, "x", ("one", "1"), at=BEFORE)
    await told(store, "y", ("two", "2"), at=AFTER)
    what = deferred("late", said("again"), reply="so", at=BEGAN, intent=Intent(rewind=1))
    await store.commit(KEY, await settled(store, what))
    assert texts(await log(store)) == ["two", "2", "again", "so"]


async def test_it_asks_for_the_whole_log_of_its_profile_and_key() -> None:
    what = deferred("late", said("one"))
    meta = ExchangeMeta(exchange=exchange("late", profile="p"), idempotency_key="k")
    what = msgspec.structs.replace(what, meta=meta)
    assert what.load_options == LoadOptions(profile="p", whole=True, idempotency_key="k")


@pytest.mark.parametrize(("size", "aside"), [(100, False), (100_000, True)])
async def test_what_is_large_is_counted_in_a_thread(size: int, aside: bool) -> None:
    store, counted_in = FaultyStore(), set[int]()

    def count(raw: bytes) -> int:
        counted_in.add(threading.get_ident())
        return len(raw)

    with ThreadPoolExecutor(1) as threads:
        what = deferred("late", said("one"), reply="x" * size)
        snapshot = await log(store)
        await plan_deferred(Planner(store, SharedThreads(threads)), KEY, snapshot, what, count)
    assert (threading.get_ident() not in counted_in) is aside
