"""What an index does, on every back end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from proxy.memory.archive import Message
from proxy.memory.model import SessionKey, State
from proxy.recall.index import (
    NO_POSTINGS,
    POSTING_SIZE,
    ROW_SIZE,
    IndexLookup,
    IndexMark,
    Owner,
    Postings,
    Rows,
    WholeIndex,
    split_terms,
)
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.store.batches import batch, posting, row, term
from tests.support.store.commits import chat, draft, record

NOTHING = bytes(ROW_SIZE)


@pytest.fixture
def owner(tenant: str) -> Owner:
    return Owner(tenant, user="kai")


def all_of(numbers: Sequence[int]) -> Postings:
    return Postings(len(numbers), b"".join(map(posting, numbers)))


# Looking and writing


async def test_an_index_that_is_not_there_is_the_empty_look(store: Backend, owner: Owner) -> None:
    assert await store.lookup(owner, [], 10) == IndexLookup()
    assert await store.lookup(owner, [term(1)], 10, "session") == IndexLookup(
        postings=(NO_POSTINGS,)
    )
    assert await store.rows(owner, []) == Rows()
    assert await store.rows(owner, [0, 9]) == Rows(2 * NOTHING)
    assert await store.vectors(owner, "model", 4, 0, 10) in (b"", bytes(40))


async def test_what_is_written_is_seen_by_the_next_look(store: Backend, owner: Owner) -> None:
    assert await store.write(owner, batch(0, [["a", "b"], ["b"]])) is True
    seen = await store.lookup(owner, [term("b"), term("c"), term("a")], 10, "session")
    postings = (all_of([0, 1]), NO_POSTINGS, all_of([0]))
    assert seen == IndexLookup(1, b"state \0 0", postings, IndexMark(7, 2, 0xFFFFFFFF))
    assert (await store.lookup(owner, [], 10, "another")).mark is None
    assert await store.rows(owner, [1, 5, 0]) == Rows(
        row(7, 1) + NOTHING + row(7, 0), {7: "session"}
    )


async def test_batches_are_added_to_what_is_there(store: Backend, owner: Owner) -> None:
    await store.write(owner, batch(0, [["a"]]))
    assert await store.write(owner, batch(1, [["a", "b"]], first=1, session="other", number=8))
    assert await store.write(owner, batch(2, [], first=2, marked=False))
    seen = await store.lookup(owner, [term("a"), term("b")], 10, "session")
    assert seen.revision == 3 and seen.mark == IndexMark(7, 1, 0xFFFFFFFF)
    assert seen.postings == (all_of([0, 1]), all_of([1]))
    found = await store.rows(owner, [0, 1])
    assert found == Rows(row(7, 0) + row(8, 1), {7: "session", 8: "other"})


@pytest.mark.parametrize("newest", [0, 1, 159, 160, 161, 320, 340, 341, 342, 10_000])
async def test_at_most_the_newest_postings_are_fetched(
    store: Backend, owner: Owner, newest: int
) -> None:
    count = 0
    for revision, size in enumerate((1, 159, 1, 160, 19, 1)):
        await store.write(owner, batch(revision, [["a"]] * size, first=count))
        count += size
    (found,) = (await store.lookup(owner, [term("a")], newest)).postings
    kept = range(max(0, count - newest), count)
    assert found == Postings(count, b"".join(map(posting, kept)))


async def test_an_index_is_read_whole_unless_it_is_too_large(store: Backend, owner: Owner) -> None:
    assert await store.whole_index(owner, 100) is None
    await store.write(owner, batch(0, [[]], session="talk", number=3))
    empty = await store.whole_index(owner, 100, "talk")
    assert empty is not None
    assert (empty.terms, empty.head) == (b"", await store.lookup(owner, [], 0, "talk"))
    await store.write(owner, batch(1, [list(range(20))] * 400, first=1))
    whole = await store.whole_index(owner, 100)
    assert whole is not None
    terms = sorted(map(term, range(20)))
    assert whole.terms == b"".join(terms)
    expected = await store.lookup(owner, terms, 500)
    assert _by_term(whole) == (whole.head, dict(zip(terms, expected.postings, strict=True)))
    assert whole.head == replace(expected, postings=())
    assert await store.whole_index(owner, 19) is None


async def test_a_batch_of_thousands_of_terms_is_added_whole(store: Backend, owner: Owner) -> None:
    words = list(range(5000))
    assert await store.write(owner, batch(0, [words]))
    assert await store.write(owner, batch(1, [words[:4000]], first=1))
    seen = await store.lookup(owner, [term(word) for word in words], 10)
    assert seen.postings == (all_of([0, 1]),) * 4000 + (all_of([0]),) * 1000


async def test_a_batch_for_another_revision_changes_nothing(store: Backend, owner: Owner) -> None:
    assert await store.write(owner, batch(1, [["a"]])) is False
    assert await store.lookup(owner, [], 1) == IndexLookup()
    await store.write(owner, batch(0, [["a"]]))
    before = await store.lookup(owner, [term("a"), term("b")], 10, "session")
    for wrong in (batch(0, [["b"]]), batch(2, [["b"]], first=1), batch(1, [["b"]])):
        assert await store.write(owner, wrong) is False
    assert await store.lookup(owner, [term("a"), term("b")], 10, "session") == before
    assert await store.rows(owner, [1]) == Rows(NOTHING)


async def test_of_writers_at_once_exactly_one_wins(store: Backend, owner: Owner) -> None:
    for revision in range(3):
        batches = [
            batch(revision, [[n]], first=revision, session=f"s{n}", number=n) for n in range(8)
        ]
        won = await asyncio.gather(*(store.write(owner, each) for each in batches))
        assert sorted(won) == [False] * 7 + [True]
        seen = await store.lookup(owner, [term(n) for n in range(8)], 10, f"s{won.index(True)}")
        assert seen.mark == IndexMark(won.index(True), revision + 1, 0xFFFFFFFF)
        assert sum(found.count for found in seen.postings) == revision + 1


async def test_owners_know_nothing_of_each_other(store: Backend, tenant: str) -> None:
    owners = [
        Owner(tenant, user="kai"),
        Owner(tenant, session="kai"),
        Owner(tenant, user="eve"),
        Owner(f"{tenant}:kai", user="kai"),
    ]
    for n, owner in enumerate(owners):
        assert await store.lookup(owner, [], 1) == IndexLookup()
        assert await store.write(owner, batch(0, [[n]]))
        await store.put_vectors(owner, "model", 2, {0: b"v%d" % n})
    for n, owner in enumerate(owners):
        seen = await store.lookup(owner, [term(m) for m in range(len(owners))], 10)
        assert [found.count for found in seen.postings] == [int(m == n) for m in range(len(owners))]
        assert await store.vectors(owner, "model", 2, 0, 1) == b"v%d" % n
    await store.drop(owners[0])
    assert [(await store.lookup(owner, [], 1)).revision for owner in owners] == [0, 1, 1, 1]


# Forgetting


async def test_a_dropped_session_has_no_name_and_no_mark(store: Backend, owner: Owner) -> None:
    await store.write(owner, batch(0, [["a"]]))
    await store.write(owner, batch(1, [["a"]], first=1, session="other", number=8))
    await store.drop_session(owner, "session")
    seen = await store.lookup(owner, [term("a")], 10, "session")
    assert seen.mark is None and seen.postings == (all_of([0, 1]),)
    assert await store.rows(owner, [0, 1]) == Rows(row(7, 0) + row(8, 1), {8: "other"})
    again = batch(seen.revision, [["a"]], first=2, number=9)
    assert await store.write(owner, again)
    assert (await store.rows(owner, [0, 2])).sessions == {9: "session"}


async def test_a_batch_made_before_a_session_was_dropped_is_refused(
    store: Backend, owner: Owner
) -> None:
    await store.write(owner, batch(0, [["a"]]))
    late = batch(1, [["b"]], first=1)
    await store.drop_session(owner, "session")
    assert await store.write(owner, late) is False


@pytest.mark.parametrize("mine", [True, False])
async def test_a_batch_of_a_session_that_was_erased_meanwhile_leaves_nothing(
    store: Backend, tenant: str, clock: Clock, mine: bool
) -> None:
    key, owner = SessionKey(tenant, "talk"), Owner(tenant, user="kai")
    if mine:
        owner = Owner(tenant, session="talk")
    await store.commit(key, chat("x1", user=None if mine else "kai", at=clock.now))
    seen = await store.session(key)
    assert seen is not None
    began = seen.created_at
    assert not await store.write(owner, batch(0, [["a"]], session="talk", began=began - 1))
    assert await store.write(owner, batch(0, [["a"]], session="talk", began=began))
    await store.delete(key)
    lookup = await store.lookup(owner, [term("a")], 1, "talk")
    more = batch(lookup.revision, [["a"]], first=int(not mine), session="talk", began=began)
    assert not await store.write(owner, more)
    assert (await store.lookup(owner, [], 0, "talk")).mark is None


async def test_a_session_that_gets_another_number_has_no_other(
    store: Backend, owner: Owner
) -> None:
    await store.write(owner, batch(0, [["a"]], number=7))
    await store.write(owner, batch(1, [["a"]], first=1, number=8))
    assert (await store.rows(owner, [0, 1])).sessions == {8: "session"}


async def test_dropping_what_is_not_there_is_nothing(store: Backend, owner: Owner) -> None:
    await store.drop(owner)
    await store.drop_session(owner, "session")
    assert await store.lookup(owner, [], 1) == IndexLookup()


async def test_a_dropped_index_can_be_made_anew(store: Backend, owner: Owner) -> None:
    await store.write(owner, batch(0, [range(2500), [1]]))
    await store.put_vectors(owner, "model", 4, {0: b"1234"})
    await store.drop(owner)
    assert await store.lookup(owner, [term(1)], 9, "session") == IndexLookup(
        postings=(NO_POSTINGS,)
    )
    assert await store.rows(owner, [0]) == Rows(NOTHING)
    assert await store.write(owner, batch(0, [[1]], session="other"))
    seen = await store.lookup(owner, [term(1), term(2)], 9, "session")
    assert seen == IndexLookup(1, b"state \0 0", (all_of([0]), NO_POSTINGS), None)
    assert not any(await store.vectors(owner, "model", 4, 0, 2))


async def test_a_state_is_kept_of_a_dropped_index_until_the_next_begins(
    store: Backend, owner: Owner
) -> None:
    await store.drop(owner, b"kept")
    assert await store.lookup(owner, [], 1) == IndexLookup()
    await store.write(owner, batch(0, [[1]]))
    await store.drop(owner, b"kept")
    await store.drop_session(owner, "session")
    await store.put_vectors(owner, "model", 4, {0: b"1234"})
    assert await store.lookup(owner, [term(1)], 9, "session") == IndexLookup(
        0, b"kept", (NO_POSTINGS,)
    )
    assert await store.rows(owner, [0]) == Rows(NOTHING)
    assert await store.write(owner, batch(0, [[1]]))
    assert await store.lookup(owner, [term(1)], 9) == IndexLookup(1, b"state \0 0", (all_of([0]),))
    assert not any(await store.vectors(owner, "model", 4, 0, 1))
    await store.drop(owner)
    assert await store.lookup(owner, [], 1) == IndexLookup()


async def test_an_index_may_be_dropped_and_written_at_once(store: Backend, owner: Owner) -> None:
    await store.write(owner, batch(0, [range(3000)]))
    anew = batch(0, [[1, 2]])
    *_, won = await asyncio.gather(store.drop(owner), store.drop(owner), store.write(owner, anew))
    seen = await store.lookup(owner, [term(1), term(2), term(3)], 9)
    kept = (all_of([0]), all_of([0]), NO_POSTINGS)
    assert seen.postings == (kept if seen.revision else (NO_POSTINGS,) * 3)
    assert won or not seen.revision


# Vectors


async def test_vectors_lie_at_their_passages_numbers(store: Backend, owner: Owner) -> None:
    await store.write(owner, batch(0, [["a"]]))
    await store.put_vectors(owner, "model", 4, {1: b"1111", 3: b"3333"})
    await store.put_vectors(owner, "model", 4, {3: b"new!", 5000: b"last"})
    await store.put_vectors(owner, "model", 3, {1: b"abc"})
    await store.put_vectors(owner, "other model", 4, {0: b"0000"})
    found = await store.vectors(owner, "model", 4, 0, 5)
    assert found.rstrip(b"\0") == b"\0\0\0\0" + b"1111" + b"\0\0\0\0" + b"new!"
    assert await store.vectors(owner, "model", 4, 3, 4) == b"new!"
    assert await store.vectors(owner, "model", 4, 2, 2) == b""
    assert (await store.vectors(owner, "model", 4, 4999, 5002)).rstrip(b"\0") == b"\0\0\0\0last"
    assert await store.vectors(owner, "model", 3, 1, 2) == b"abc"
    assert (await store.vectors(owner, "other model", 4, 0, 2)).rstrip(b"\0") == b"0000"
    assert (await store.vectors(owner, "unknown", 4, 0, 2)).rstrip(b"\0") == b""


async def test_without_an_index_there_are_no_vectors(store: Backend, owner: Owner) -> None:
    await store.put_vectors(owner, "model", 4, {0: b"late"})
    assert not any(await store.vectors(owner, "model", 4, 0, 1))
    await store.write(owner, batch(0, [["a"]]))
    assert not any(await store.vectors(owner, "model", 4, 0, 1))


# With history


async def test_deleting_a_session_makes_indexes_forget_it(
    store: Backend, key: SessionKey, owner: Owner
) -> None:
    own, other = Owner(key.tenant, session=key.session), Owner(key.tenant, user="eve")
    await store.commit(key, chat("x1", user="kai"))
    for each in (owner, own, other):
        await store.write(each, batch(0, [["a"]], session=key.session))
    await store.delete(key)
    assert await store.lookup(own, [], 1) == IndexLookup()
    assert (await store.lookup(owner, [term("a")], 9, key.session)).mark is None
    assert (await store.rows(owner, [0])).sessions == {}
    assert (await store.lookup(other, [], 1, key.session)).mark is not None


async def test_the_index_of_a_session_that_is_gone_can_be_deleted(
    store: Backend, key: SessionKey
) -> None:
    own = Owner(key.tenant, session=key.session)
    await store.write(own, batch(0, [["a"]]))
    assert await store.delete(key) is False
    assert await store.lookup(own, [], 1) == IndexLookup()


async def test_indexes_of_a_tenant_that_moves_are_made_anew(store: Backend, tenant: str) -> None:
    new, apart = f"{tenant}-new", f"{tenant}-apart"
    for name in ("s1", "s2", "s3"):
        await store.commit(SessionKey(tenant, name), chat("x1", user="kai"))
    await store.commit(SessionKey(new, "s3"), chat("y1", user="eve"))
    gone = [Owner(tenant, user="kai"), Owner(tenant, session="s1"), Owner(new, user="kai")]
    kept = [Owner(new, user="eve"), Owner(apart, user="kai")]
    for owner in gone + kept:
        await store.write(owner, batch(0, [["a"]]))
    assert await store.move(tenant, new) == 2
    assert [(await store.lookup(owner, [], 1)).revision for owner in gone] == [0, 0, 0]
    assert [(await store.lookup(owner, [], 1)).revision for owner in kept] == [1, 1]


async def test_a_move_to_itself_leaves_indexes_alone(store: Backend, tenant: str) -> None:
    owner = Owner(tenant, user="kai")
    await store.commit(SessionKey(tenant, "s"), chat("x1", user="kai"))
    await store.write(owner, batch(0, [["a"]]))
    assert await store.move(tenant, tenant) == 0
    assert (await store.lookup(owner, [], 1)).revision == 1


# Passages


async def test_passages_are_active_messages_by_their_place(store: Backend, tenant: str) -> None:
    wired = draft("x1", 1, "assistant", wire=b"as it came")
    first = record("x1", draft("x1", 0), wired, user="kai")
    await store.commit(SessionKey(tenant, "s1"), first)
    await store.commit(SessionKey(tenant, "s1"), chat("x2"))
    second = chat("y1", user="kai")
    await store.commit(SessionKey(tenant, "s2"), second)
    found = await store.passages(tenant, "kai", {"s1": [2, 1], "s2": (2,), "nowhere": {1}})
    assert found == {
        ("s1", 1): Message(1, first.drafts[0].card, "active", first.drafts[0].body),
        ("s1", 2): Message(2, wired.card, "active", wired.body),
        ("s2", 2): Message(2, second.drafts[1].card, "active", second.drafts[1].body),
    }
    assert await store.passages(tenant, "kai", {}) == {}
    assert await store.passages(tenant, "kai", {"s1": []}) == {}


async def test_passages_that_are_not_there_any_more_are_left_out(
    store: Backend, tenant: str
) -> None:
    key = SessionKey(tenant, "s")
    await store.commit(key, chat("x1", user="kai", reserved=1))
    await store.commit(key, chat("x2", superseded=("x1.1",)))
    seqs = [0, 1, 2, 3, 4, 5, 6, 10**9]
    found = await store.passages(tenant, "kai", {"s": seqs})
    assert [seq for _, seq in found] == [1, 4, 5]
    await store.delete(key)
    assert await store.passages(tenant, "kai", {"s": seqs}) == {}


async def test_passages_are_nobody_elses(store: Backend, tenant: str) -> None:
    await store.commit(SessionKey(tenant, "kais"), chat("x1", user="kai"))
    await store.commit(SessionKey(tenant, "eves"), chat("x1", user="eve"))
    await store.commit(SessionKey(tenant, "nobodys"), chat("x1"))
    places = {name: [1] for name in ("kais", "eves", "nobodys")}
    for user, mine in (("kai", ["kais"]), ("eve", ["eves"]), ("", []), ("x", [])):
        assert [name for name, _ in await store.passages(tenant, user, places)] == mine
    assert [name for name, _ in await store.passages(tenant, None, places)] == list(places)
    assert await store.passages(f"{tenant}-other", "kai", places) == {}
    assert await store.passages(f"{tenant}-other", None, places) == {}


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_passages_of_an_expired_session_are_left_out(
    store: Backend, key: SessionKey, clock: Clock
) -> None:
    await store.commit(key, chat("x1", user="kai", ttl=10))
    places = {key.session: [1]}
    clock.now += 9
    assert await store.passages(key.tenant, "kai", places)
    clock.now += 1
    assert await store.passages(key.tenant, "kai", places) == {}
    assert await store.passages(key.tenant, None, places) == {}


# Time


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_an_index_lives_as_long_as_its_longest_batch_says(
    store: Backend, owner: Owner, clock: Clock
) -> None:
    await store.write(owner, batch(0, [["a"]], ttl=100))
    clock.now += 50
    await store.write(owner, batch(1, [["a"]], first=1, ttl=10))
    clock.now += 49
    assert (await store.lookup(owner, [term("a")], 9)).postings == (all_of([0, 1]),)
    clock.now += 1
    assert await store.lookup(owner, [], 1, "session") == IndexLookup()
    assert await store.rows(owner, [0]) == Rows(NOTHING)
    assert await store.write(owner, batch(0, [["a"]], ttl=0))
    assert (await store.lookup(owner, [term("a")], 9)).postings == (all_of([0]),)
    await store.write(owner, batch(1, [["a"]], first=1, ttl=10))
    clock.now += 10**9
    assert (await store.lookup(owner, [], 1)).revision == 2


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_how_long_an_index_lives_is_said_by_batches_with_passages(
    store: Backend, owner: Owner, clock: Clock
) -> None:
    await store.write(owner, batch(0, []))
    await store.write(owner, batch(1, [["a"]], ttl=100))
    await store.write(owner, batch(2, [], first=1, ttl=0))
    await store.write(owner, batch(3, [], first=1, ttl=1000))
    clock.now += 99
    assert (await store.lookup(owner, [], 1)).revision == 4
    clock.now += 1
    assert await store.lookup(owner, [], 1) == IndexLookup()


# Against the plainest one


@pytest.mark.parametrize("url", ["sqlite", "redis", "redis-cluster"], indirect=True)
@pytest.mark.parametrize("seed", range(4))
async def test_a_back_end_does_what_the_index_in_memory_does(
    store: Backend, tenant: str, seed: int
) -> None:
    chance, oracle = random.Random(seed), InMemoryStore()
    owners = [Owner(tenant, user="kai"), Owner(tenant, session="kai")]
    counts = dict.fromkeys(owners, 0)
    for _ in range(120):
        owner = chance.choice(owners)
        counts[owner] = await _something(chance, store, oracle, owner, counts[owner])
        terms = [term(chance.randrange(12)) for _ in range(3)]
        asked = (terms, chance.choice([1, 100, 1000]), f"s{chance.randrange(3)}")
        assert await store.lookup(owner, *asked) == await oracle.lookup(owner, *asked)
        whole, expected = [await each.whole_index(owner, 99, "s1") for each in (store, oracle)]
        assert _by_term(whole) == _by_term(expected)
        numbers = [chance.randrange(counts[owner] + 3) for _ in range(5)]
        assert await store.rows(owner, numbers) == await oracle.rows(owner, numbers)
        vectors = await store.vectors(owner, "model", 5, 3, 40)
        assert vectors.ljust(185, b"\0") == await oracle.vectors(owner, "model", 5, 3, 40)


def _by_term(whole: WholeIndex | None) -> tuple[IndexLookup, Mapping[bytes, Postings]] | None:
    """The head, and the postings of each term."""
    if whole is None:
        return None
    found, end = {}, 0
    for each, size in zip(split_terms(whole.terms), whole.sizes, strict=True):
        begin, end = end, end + size
        found[each] = Postings(size // POSTING_SIZE, whole.postings[begin:end])
    return whole.head, found


async def _something(
    chance: random.Random, store: Backend, oracle: InMemoryStore, owner: Owner, count: int
) -> int:
    """Do something to both; the number of passages afterwards."""
    what = chance.random()
    if what < 0.05:
        await asyncio.gather(store.drop(owner), oracle.drop(owner))
        return 0
    if what < 0.15:
        session = f"s{chance.randrange(3)}"
        await store.drop_session(owner, session)
        await oracle.drop_session(owner, session)
        return count
    if what < 0.3:
        vectors = {chance.randrange(50): chance.randbytes(5) for _ in range(3)}
        await store.put_vectors(owner, "model", 5, vectors)
        await oracle.put_vectors(owner, "model", 5, vectors)
        return count
    passages = [
        [word for word in range(12) if chance.random() < 0.4] for _ in range(chance.randrange(90))
    ]
    n = chance.randrange(3)
    revision = (await oracle.lookup(owner, [], 1)).revision + (chance.random() < 0.1)
    added = batch(
        revision, passages, first=count, session=f"s{n}", number=n + 3 * count, marked=n > 0
    )
    written = await oracle.write(owner, added)
    assert await store.write(owner, added) == written
    return count + len(passages) if written else count


# What an index lacks

STATES: tuple[State, ...] = ("active", "superseded")


async def test_what_an_index_lacks_of_a_session_is_asked_at_once(
    store: Backend, tenant: str
) -> None:
    key = SessionKey(tenant, "talk")
    assert await store.unindexed(key, STATES, 10) is None
    for number in range(3):
        await store.commit(key, chat(f"x{number}", user="kai"))
    seen = await store.unindexed(key, STATES, 10)
    assert seen is not None
    owner = Owner(tenant, user="kai")
    assert (seen.session.user, seen.lookup) == ("kai", await store.lookup(owner, [], 0, "talk"))
    assert seen.page == await store.messages(key, STATES, 0, 10)
    assert await store.write(owner, batch(0, [["tea"], ["tea"], ["tea"]], session="talk"))
    seen = await store.unindexed(key, STATES, 2)
    assert seen is not None and seen.lookup.mark is not None
    marked = seen.lookup.mark.seq
    assert [message.seq for message in seen.page.items] == [marked, marked + 1]
