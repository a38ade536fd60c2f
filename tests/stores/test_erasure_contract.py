"""The marks of what was erased, on every back end: nothing older is written again."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from proxy.memory.erasure import MARK_SECONDS, Subject
from proxy.memory.items import Item, ItemOwner, Place
from proxy.memory.model import LoadOptions, SessionKey, Snapshot, WorkRequest
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.archives import revise, take_out
from tests.support.store.commits import chat, summary
from tests.support.store.shelves import at, gone, places, put, value

ALL = LoadOptions(profile="default", whole=True)
NOW = 1000.0
"""When the store believes it is; exchanges are of about that time."""


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def session(key: SessionKey) -> Subject:
    return Subject(key.tenant, session=key.session)


@pytest.fixture
def kai(tenant: str) -> Subject:
    return Subject(tenant, "kai")


# Commits


@pytest.mark.parametrize(
    ("started", "outcome"),
    [
        pytest.param(999.9, "erased", id="before"),
        pytest.param(1000.0, "erased", id="at-the-mark"),
        pytest.param(1000.1, "recorded", id="after"),
    ],
)
async def test_an_exchange_that_began_before_its_session_was_erased_is_refused(
    store: Backend, key: SessionKey, session: Subject, started: float, outcome: str
) -> None:
    await store.commit(key, chat("x1", 990.0))
    await store.mark([session], 1000.0)
    await store.delete(key)
    late = chat(
        "x2",
        1005.0,
        started_at=started,
        work_requests=(WorkRequest(kind="summary", profile="p", due_at=1.0),),
    )
    assert await store.commit(key, late) == outcome
    assert (await store.load(key, ALL)).exists == (outcome == "recorded")
    assert (await store.session(key) is not None) == (outcome == "recorded")
    listed = (await store.sessions(key.tenant, None, None, 9)).items
    assert len(listed) == (outcome == "recorded")
    waiting = {work.tenant for work in await store.waiting(1e9, 1000)}
    assert (key.tenant in waiting) == (outcome == "recorded")


async def test_an_exchange_of_a_person_who_was_erased_is_refused_in_every_session(
    store: Backend, tenant: str, kai: Subject
) -> None:
    await store.mark([kai], 1000.0)
    for name in ("a", "b"):
        assert await store.commit(SessionKey(tenant, name), chat("x1", user="kai")) == "erased"
        assert await store.load(SessionKey(tenant, name), ALL) == Snapshot()
    assert await store.commit(SessionKey(tenant, "a"), chat("x1", user="eve")) == "recorded"
    assert await store.commit(SessionKey(tenant, "c"), chat("x1")) == "recorded"
    assert await store.commit(SessionKey(f"{tenant}-other", "a"), chat("x1", user="kai")) == (
        "recorded"
    )
    assert await store.commit(SessionKey(tenant, "b"), chat("x2", 1000.5, user="kai")) == "recorded"
    assert (await store.sessions(tenant, "kai", None, 9)).items[0].id == "b"


async def test_the_mark_of_a_sessions_owner_counts_though_the_request_names_nobody(
    store: Backend, key: SessionKey, kai: Subject
) -> None:
    await store.commit(key, chat("x1", 900.0, user="kai"))
    await store.mark([kai], 1000.0)
    assert await store.commit(key, chat("x2", 1000.0)) == "erased"
    assert [x.card.id for x in (await store.load(key, ALL)).log] == ["x1.0", "x1.1"]
    assert await store.exchange(key, "x2") is None
    assert await store.commit(key, chat("x3", 1000.5)) == "recorded"


@pytest.mark.parametrize("of", ["session", "kai"])
async def test_a_refused_exchange_changes_nothing_of_a_session_that_is_there(
    store: Backend, key: SessionKey, of: str, request: pytest.FixtureRequest
) -> None:
    await store.commit(key, chat("x1", 900.0, idempotency_key="k", system=b"[1]"))
    await store.put_summary(key, summary(3), 0, None)
    await store.mark([request.getfixturevalue(of)], 1000.0)
    before = await store.load(key, ALL), await store.session(key), await store.summaries(key)
    late = chat(
        "x2",
        1000.0,
        user="kai",
        idempotency_key="k",
        superseded=("x1.0",),
        system=b"[2]",
        ttl=5,
    )
    assert await store.commit(key, late) == "erased"
    after = await store.load(key, ALL), await store.session(key), await store.summaries(key)
    assert after == before
    assert (await store.sessions(key.tenant, "kai", None, 9)).items == ()


@pytest.mark.parametrize("of", ["session", "user"])
async def test_an_exchange_that_is_refused_anyway_says_why(
    store: Backend, key: SessionKey, of: str
) -> None:
    await store.commit(key, chat("x1", 900.0, user="kai"))
    await store.commit(key, chat("x2", 901.0, user="kai", idempotency_key="k"))
    if of == "session":
        await store.mark([Subject(key.tenant, session=key.session)], 1000.0)
    else:
        for user in ("kai", "eve"):
            await store.mark([Subject(key.tenant, user)], 1000.0)
    assert await store.commit(key, chat("x1", 900.0, user="kai")) == "duplicate"
    assert await store.commit(key, chat("x3", 950.0, user="eve")) == "foreign"
    outrun = chat("x4", 900.5, user="kai", idempotency_key="k")
    assert await store.commit(key, outrun) == "outrun"


async def test_an_exchange_from_the_spool_does_not_bring_back_what_was_erased(
    store: Backend, key: SessionKey, session: Subject, kai: Subject
) -> None:
    """It was recorded, the answer was lost, its host was down while all was erased."""
    spooled = chat("x1", 990.0, user="kai")
    await store.commit(key, spooled)
    for subject in (kai, session):
        await store.mark([subject], NOW)
    await store.delete(key)
    assert await store.commit(key, chat("x2", 1010.0, user="kai")) == "recorded"
    assert await store.commit(key, spooled) == "erased"
    assert [x.card.id for x in (await store.load(key, ALL)).log] == ["x2.0", "x2.1"]


async def test_a_session_may_be_erased_again_and_its_latest_mark_counts(
    store: Backend, key: SessionKey, session: Subject
) -> None:
    await store.mark([session], 2000.0)
    assert await store.commit(key, chat("x1", 1500.0)) == "erased"
    await store.mark([session], 1000.0)
    assert await store.commit(key, chat("x1", 1500.0)) == "recorded"
    await store.mark([session], 1600.0)
    assert await store.commit(key, chat("x2", 1500.0)) == "erased"


async def test_many_are_marked_together(store: Backend, tenant: str) -> None:
    keys = [SessionKey(tenant, f"s{n}") for n in range(250)]
    for until in (2000.0, 1000.0):
        await store.mark([Subject(tenant, session=key.session) for key in keys], until)
    await store.mark([], 3000.0)
    for key in keys[::83]:
        assert await store.commit(key, chat("x1", 1000.0)) == "erased"
        assert await store.commit(key, chat("x1", 1000.5)) == "recorded"


async def test_of_two_marks_the_later_one_counts(
    store: Backend, key: SessionKey, session: Subject, kai: Subject
) -> None:
    await store.mark([session], 900.0)
    await store.mark([kai], 1000.0)
    assert await store.commit(key, chat("x1", 950.0, user="kai")) == "erased"
    await store.mark([session], 1000.0)
    await store.mark([kai], 900.0)
    assert await store.commit(key, chat("x1", 950.0, user="kai")) == "erased"
    assert await store.commit(key, chat("x1", 1000.5, user="kai")) == "recorded"


async def test_one_may_ask_what_would_be_refused(
    store: Backend, key: SessionKey, session: Subject, kai: Subject
) -> None:
    eve = Subject(key.tenant, "eve")
    assert not await store.is_erased([session, kai], 0.0)
    await store.mark([kai], 1000.0)
    assert await store.is_erased([kai], 1000.0) and await store.is_erased([session, kai], 1000.0)
    assert not await store.is_erased([session, kai], 1000.5)
    assert not await store.is_erased([session, eve], 0.0)
    await store.mark([session], 1010.0)
    assert await store.is_erased([session, kai], 1005.0)
    await store.unmark(session)
    assert not await store.is_erased([session, kai], 1005.0)


async def test_after_an_import_everything_may_be_written_again(
    store: Backend, key: SessionKey, session: Subject, kai: Subject
) -> None:
    await store.commit(key, chat("x1", 900.0, user="kai"))
    archived = await take_out(store, key)
    for subject in (session, kai):
        await store.mark([subject], 1000.0)
    await store.delete(key)
    assert await store.restore(key, archived)
    assert await store.commit(key, chat("x2", 950.0, user="kai")) == "erased"
    await store.unmark(session)
    assert await store.commit(key, chat("x2", 950.0, user="kai")) == "erased"
    await store.unmark(kai)
    await store.unmark(kai)
    assert await store.commit(key, chat("x2", 950.0, user="kai")) == "recorded"
    assert (await store.load(key, ALL)).messages == 4


@pytest.mark.parametrize("began", [900.0, 1000.0, 1000.5])
async def test_an_import_lifts_no_mark_that_was_set_after_it_began(
    store: Backend, session: Subject, kai: Subject, began: float
) -> None:
    for subject in (session, kai):
        await store.mark([subject], 1000.0)
        await store.unmark(subject, began)
        assert await store.is_erased([subject], 900.0) == (began <= 1000.0)
        await store.unmark(subject, began)


async def test_items_that_come_from_before_an_erasure_are_not_adopted(
    store: Backend, tenant: str, kai: Subject
) -> None:
    shelf = ItemOwner(tenant, "kai")
    await store.mark([kai], 1000.0)
    for since in (900.0, 1000.0):
        assert await store.adopt_items(shelf, [item("a")], since) == 0
    assert await places(store, shelf) == []
    assert await store.adopt_items(ItemOwner(tenant, "eve"), [item("a")], 900.0) == 1
    assert await store.adopt_items(shelf, [item("a")], 1000.5) == 1
    assert await store.adopt_items(shelf, [item("b")]) == 1


async def test_a_mark_outlives_its_session_and_goes_with_no_delete(
    store: Backend, key: SessionKey, session: Subject
) -> None:
    await store.mark([session], 1000.0)
    await store.commit(key, chat("x1", 1001.0, ttl=60))
    assert await store.delete(key)
    assert not await store.delete(key)
    assert await store.commit(key, chat("x1", 999.0)) == "erased"
    assert key.tenant not in await store.tenants()


async def test_a_session_is_marked_whosoevers_it_is(store: Backend, key: SessionKey) -> None:
    await store.mark([Subject(key.tenant, "kai", key.session)], 1000.0)
    assert await store.commit(key, chat("x1", user="eve")) == "erased"
    assert await store.commit(SessionKey(key.tenant, "b"), chat("x1", user="kai")) == "recorded"
    await store.unmark(Subject(key.tenant, session=key.session))
    assert await store.commit(key, chat("x1", user="eve")) == "recorded"


async def test_marks_of_odd_names_are_apart(store: Backend, tenant: str) -> None:
    names = ("{a}", "a:b", "a", "b", "a:", '"', "ä", "\u2603", "1:a", "%7B")
    for name in names[::2]:
        await store.mark([Subject(tenant, name)], 1000.0)
        await store.mark([Subject(tenant, session=name)], 1000.0)
    for n, name in enumerate(names):
        expected = "erased" if n % 2 == 0 else "recorded"
        assert await store.commit(SessionKey(tenant, f"of {n}"), chat("x1", user=name)) == expected
        assert await store.commit(SessionKey(tenant, name), chat("x1")) == expected


async def test_people_change_what_there_is_whatever_the_mark(
    store: Backend, key: SessionKey, session: Subject
) -> None:
    await store.commit(key, chat("x1", 900.0))
    await store.mark([session], 1000.0)
    assert await revise(store, key, removed=("x1.0",))
    assert (await store.load(key, ALL)).messages == 1


async def erase(store: Backend, person: Subject, until: float) -> None:
    """First the mark, then what there is: whatever comes in between is seen by one of the two."""
    await store.mark([person], until)
    page = await store.sessions(person.tenant, person.user, None, 1000)
    for found in page.items:
        await store.mark([Subject(person.tenant, session=found.id)], until)
        await store.delete(SessionKey(person.tenant, found.id))


@pytest.mark.parametrize("ahead", range(0, 36, 7))
async def test_nothing_is_left_of_a_person_who_is_erased_while_they_chat(
    store: Backend, tenant: str, kai: Subject, ahead: int
) -> None:
    async def say(n: int) -> str:
        key = SessionKey(tenant, f"s{n % 5}")
        return await store.commit(key, chat(f"x{n}", 990.0 + n / 10, user="kai"))

    spoken = [asyncio.create_task(say(n)) for n in range(ahead)]
    erasing = asyncio.create_task(erase(store, kai, 1000.0))
    spoken += [asyncio.create_task(say(n)) for n in range(ahead, 35)]
    outcomes = set(await asyncio.gather(*spoken))
    await erasing
    assert outcomes <= {"recorded", "erased"}
    assert (await store.sessions(tenant, None, None, 9)).items == ()
    for n in range(5):
        assert await store.load(SessionKey(tenant, f"s{n}"), ALL) == Snapshot()
    assert await say(34) == "erased"
    assert await say(3) == "erased"


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)  # Redis has its own clock
async def test_a_mark_is_kept_for_its_time(
    store: Backend, key: SessionKey, session: Subject, clock: Clock
) -> None:
    await store.mark([session], 1000.0)
    clock.now = 1000.0 + MARK_SECONDS - 1
    assert await store.commit(key, chat("x1", 999.0)) == "erased"
    clock.now += 1
    assert await store.commit(key, chat("x1", 999.0)) == "recorded"


# Putting back


@pytest.mark.parametrize("of", ["session", "kai"])
async def test_what_was_read_before_an_erasure_is_not_put_back_behind_it(
    store: Backend, key: SessionKey, of: str, request: pytest.FixtureRequest
) -> None:
    await store.commit(key, chat("x1", 900.0, user="kai"))
    archived = await take_out(store, key)
    await store.delete(key)
    await store.mark([request.getfixturevalue(of)], 1000.0)
    for since in (900.0, 1000.0):
        assert not await store.restore(key, archived, since)
        assert await store.session(key) is None
        for user in (None, "kai"):
            assert (await store.sessions(key.tenant, user, None, 9)).items == ()
    assert await store.restore(key, archived, 1000.5)
    assert await take_out(store, key) == archived
    assert not await store.restore(key, archived, 900.0)
    assert await take_out(store, key) == archived


# Summaries


async def test_a_summary_of_what_was_erased_since_is_refused(
    store: Backend, key: SessionKey, session: Subject
) -> None:
    await store.mark([session], 1000.0)
    await store.commit(key, chat("x1", 1001.0))
    for since in (999.0, 1000.0):
        assert not await store.put_summary(key, summary(3, "old"), 0, None, since)
    assert list(await store.summaries(key)) == []
    assert await store.put_summary(key, summary(3), 0, 0, 1000.5)
    assert await store.put_summary(key, summary(3), 1, 0)
    await store.unmark(session)
    assert await store.put_summary(key, summary(3), 2, 0, 999.0)


# Items


async def test_what_was_learned_before_a_person_was_erased_is_not_written(
    store: Backend, tenant: str, kai: Subject
) -> None:
    shelf, facts = ItemOwner(tenant, "kai"), ("users", "kai", "facts")
    await store.change_items(shelf, [put(facts, "old")])
    await store.mark([kai], 1000.0)
    for since in (999.0, 1000.0):
        changes = [put(facts, "k"), gone(facts, "old")]
        assert not await store.change_items(shelf, changes, since)
    assert await places(store, shelf) == [Place(facts, "old")]
    assert await store.change_items(shelf, [put(facts, "new")], 1000.5)
    assert await store.change_items(shelf, [put(facts, "by hand")])
    for others in (
        ItemOwner(tenant),
        ItemOwner(tenant, "eve"),
        ItemOwner(f"{tenant}-other", "kai"),
    ):
        assert await store.change_items(others, [put(("a",), "k")], 999.0)
    await store.unmark(kai)
    assert await store.change_items(shelf, [put(facts, "k")], 999.0)


def item(key: str, expires_at: float | None = None) -> Item:
    return Item(
        namespace=("users", "kai", "facts"),
        key=key,
        value=msgspec.Raw(b'{"adopted": 1}'),
        version=7,
        created_at=500.125,
        updated_at=600.5,
        expires_at=expires_at,
    )


async def test_adopted_items_are_as_they_were_and_those_that_are_there_stay(
    store: Backend, tenant: str, clock: Clock
) -> None:
    shelf, facts = ItemOwner(tenant, "kai"), ("users", "kai", "facts")
    await store.change_items(shelf, [put(facts, "mine", b'{"mine": 1}')])
    await store.change_items(shelf, [put(facts, "over", b"{}", expires_at=clock.now + 1)])
    clock.now += 2
    coming = [item(key) for key in ("a", "mine", "over")]
    late = [item("living", clock.now + 10), item("expired", clock.now)]
    assert await store.adopt_items(shelf, [*coming, *late]) == 3
    assert await value(store, shelf, facts, "mine") == b'{"mine": 1}'
    for expected in (coming[0], coming[2], late[0]):
        assert await at(store, shelf, facts, expected.key) == expected
    assert await at(store, shelf, facts, "expired") is None
    assert await store.adopt_items(shelf, [*coming, *late]) == 0
    assert await store.adopt_items(shelf, []) == 0
    assert await store.change_items(shelf, [put(facts, "a", b"{}", after=7)])
    adopted = await at(store, shelf, facts, "a")
    assert adopted is not None and (adopted.version, adopted.created_at) == (8, 500.125)


async def test_many_items_are_adopted_at_once(store: Backend, tenant: str) -> None:
    shelf = ItemOwner(tenant, "kai")
    many = [item(f"{n:04d}") for n in range(1500)]
    assert await store.adopt_items(shelf, many) == 1500
    assert len(await places(store, shelf)) == 1500
    assert await store.drop_items(shelf, ()) == 1500
