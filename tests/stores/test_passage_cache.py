"""Who recalls again is given what is there now, whoever has changed it; it is read once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from proxy.memory.archive import Message
from proxy.memory.model import Amendment, SessionKey, State
from proxy.memory.store import Store
from proxy.stores.common.passage_cache import (
    MESSAGE_BYTES,
    NO_PASSAGES,
    CachedPassages,
    PassageCache,
)
from tests.support.store.archives import edited, revise, take_out
from tests.support.store.commits import card, chat, draft

SEQS = range(1, 30)

Write = Callable[[Store, SessionKey], Awaitable[object]]


async def put_back(store: Store, key: SessionKey) -> None:
    archived = await take_out(store, key)
    await store.delete(key)
    assert await store.restore(key, archived)


async def begin_anew(store: Store, key: SessionKey) -> None:
    await store.delete(key)
    await store.commit(key, chat("z0", at=2000.0, user="kai"))


WRITES: dict[str, Write] = {
    "nothing": lambda store, key: store.passages(key.tenant, None, {key.session: SEQS}),
    "appended": lambda store, key: store.commit(key, chat("y1")),
    "superseded": lambda store, key: store.commit(key, chat("y1", superseded=("x5.0", "x5.1"))),
    "amended": lambda store, key: store.amend(
        key, Amendment(exchange="x5", drafts=(draft("x5", 2, "assistant"),))
    ),
    "amended in what it says": lambda store, key: store.amend(
        key,
        Amendment(
            exchange="x5",
            edited=edited("x5", 1, "assistant", replaced_wire=chat("x5").drafts[1].body),
        ),
    ),
    "edited": lambda store, key: revise(
        store, key, edited=(edited("x3", 0, replaced_wire=chat("x3").drafts[0].body),)
    ),
    "taken out of the log": lambda store, key: revise(store, key, superseded=("x5.1",)),
    "removed": lambda store, key: revise(store, key, removed=("x3.0",)),
    "deleted": lambda store, key: store.delete(key),
    "put back": put_back,
    "begun anew": begin_anew,
}


async def there(store: Store, key: SessionKey) -> dict[int, Message]:
    """Its active messages, as those see them who know nothing."""
    states: tuple[State, ...] = ("active",)
    page = await store.messages(key, states, 0, 100)
    return {message.seq: message for message in page.items}


@pytest.mark.parametrize("write", WRITES)
async def test_what_another_process_has_changed_is_not_given_from_what_is_known(
    store: Store, other: Store, key: SessionKey, write: str
) -> None:
    for n in range(6):
        await store.commit(key, chat(f"x{n}", user="kai", reserved=1))
    for seqs in (SEQS, range(1, 12), SEQS):
        await store.passages(key.tenant, "kai", {key.session: seqs})
    await WRITES[write](other, key)
    expected = await there(other, key)
    for user in ("kai", None):
        found = await store.passages(key.tenant, user, {key.session: SEQS})
        assert {seq: message.card for (_, seq), message in found.items()} == {
            seq: message.card for seq, message in expected.items()
        }
        assert [m.wire for m in found.values()] == [m.wire for m in expected.values()]
    assert await store.passages(key.tenant, "lou", {key.session: SEQS}) == {}


async def test_a_session_that_comes_to_belong_to_somebody_is_given_to_nobody_else(
    store: Store, other: Store, key: SessionKey
) -> None:
    await store.commit(key, chat("x1"))
    places = {key.session: SEQS}
    assert len(await store.passages(key.tenant, None, places)) == 2
    assert await store.passages(key.tenant, "kai", places) == {}
    await other.commit(key, chat("x2", user="kai"))
    assert len(await store.passages(key.tenant, "kai", places)) == 4
    assert await store.passages(key.tenant, "lou", places) == {}


def messages(*seqs: int, size: int = 100) -> dict[int, Message]:
    return {seq: Message(seq, card("x", seq), "active", b"x" * size) for seq in seqs}


def keys(*names: str) -> list[SessionKey]:
    return [SessionKey("t", name) for name in names]


def test_so_much_is_kept_of_the_sessions_that_were_asked_last() -> None:
    known = PassageCache(max_bytes=3 * (MESSAGE_BYTES + 100))
    a, b, c = keys("a", "b", "c")
    for key in (a, b, c):
        known.put(key, CachedPassages(b"1").merged_with(messages(1)), known.era)
    known.put(a, known.get(a), known.era)
    known.put(b, known.get(b).merged_with(messages(2)), known.era)
    assert [len(known.get(key).messages) for key in (a, b, c)] == [1, 2, 0]
    # What is more than all that may be kept is not, and nothing goes for it.
    known.put(c, CachedPassages(b"1").merged_with(messages(1, 2, 3, 4)), known.era)
    assert [len(known.get(key).messages) for key in (a, b, c)] == [1, 2, 0]
    known.put(b, CachedPassages(b"1").merged_with(messages(1, 2, 3, 4)), known.era)
    assert [len(known.get(key).messages) for key in (a, b, c)] == [1, 0, 0]


def test_what_was_looked_up_before_all_was_forgotten_does_not_come_back() -> None:
    known, (key,) = PassageCache(), keys("a")
    era = known.era
    known.put(key, CachedPassages(b"1").merged_with(messages(1)), era)
    known.clear()
    known.put(key, CachedPassages(b"1").merged_with(messages(1)), era)
    assert known.get(key) is NO_PASSAGES
