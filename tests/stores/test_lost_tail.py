"""A Redis that has lost what it was told last, and is told other things: the lost stays lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from redis import Redis

from proxy.background.completion import Failed
from proxy.chat.message import typed_text_of
from proxy.memory.archive import Message
from proxy.memory.model import Commit, LoadOptions, SessionKey
from proxy.recall.index import Owner
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.backfill import EmbeddingBackfill
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import State, read_state
from proxy.recall.query.words import analyse
from proxy.recall.ranking.packing import Array
from proxy.recall.semantic.vectors import VectorCache, pack, vector_set_name
from proxy.stores.open import Backend
from tests.support.clock import Clock
from tests.support.store.commits import chat, draft, record
from tests.support.store.meanings import Meanings, embed_all
from tests.support.store.passages import said
from tests.support.talk.summarising import Workshop, ids, narrate

ASK = LoadOptions(profile="default", max_messages=40)
SEQS = range(1, 7)


@pytest.fixture
def url(redis_url: str) -> str:
    return redis_url


@pytest.fixture
def lag(url: str, key: SessionKey) -> Callable[[], Callable[[], None]]:
    """Keeps what there is, as a replica that lags behind does; what it gives puts that in place."""
    pattern = f"mp:*{key.tenant}*"

    def keep() -> Callable[[], None]:
        with Redis.from_url(url) as client:
            values = {name: client.dump(name) for name in client.keys(pattern)}

        def fail_over() -> None:
            with Redis.from_url(url) as client:
                client.delete(*client.keys(pattern))
                for name, value in values.items():
                    client.restore(name, 0, value)

        return fail_over

    return keep


def late(id: str) -> Commit:
    """An answer that joins the first turn."""
    return record(id, draft(id, 0, "tool", turn="x0.0"))


REPLACED: dict[str, tuple[list[Commit], list[Commit]]] = {
    "by nothing": ([chat("lost")], []),
    "by as much": ([chat("lost")], [chat("new")]),
    "by more": ([chat("lost")], [chat("new"), chat("newer")]),
    "by less": ([chat("lost"), chat("lost2")], [chat("new")]),
    "by the same behind others": ([chat("lost")], [chat("new"), chat("lost")]),
    "with as many changes": (
        [chat("lost", superseded=("x1.0",))],
        [chat("new", superseded=("x0.0",))],
    ),
    "farther up": ([late("lost")], [late("new")]),
}


@pytest.mark.parametrize("how", REPLACED)
async def test_a_log_that_is_known_further_than_it_is_there_is_read_again(
    store: Backend,
    other: Backend,
    key: SessionKey,
    lag: Callable[[], Callable[[], None]],
    how: str,
) -> None:
    lost, new = REPLACED[how]
    for n in range(2):
        await store.commit(key, chat(f"x{n}"))
    fail_over = lag()
    for commit in lost:
        await store.commit(key, commit)
        await store.load(key, ASK)
    fail_over()
    for _ in range(2):
        assert await store.load(key, ASK) == await other.load(key, ASK)
        for commit in new:
            assert await other.commit(key, commit) == "recorded"
        new = [chat("last")]


async def recalled(store: Backend, key: SessionKey) -> dict[tuple[str, int], Message]:
    return await store.passages(key.tenant, "kai", {key.session: SEQS})


@pytest.mark.parametrize("how", [name for name in REPLACED if name != "by nothing"])
@pytest.mark.parametrize("loaded", [False, True], ids=["asked", "told"])
async def test_passages_that_are_known_and_lost_are_not_recalled(
    store: Backend,
    other: Backend,
    key: SessionKey,
    lag: Callable[[], Callable[[], None]],
    how: str,
    loaded: bool,
) -> None:
    """Neither by who asks for them, nor by who has just loaded the session and need not options."""
    lost, new = REPLACED[how]
    for commit in (chat("x0", user="kai"), chat("x1", user="kai")):
        await store.commit(key, commit)
    fail_over = lag()
    for commit in lost:
        await store.commit(key, commit)
    assert await recalled(store, key)
    fail_over()
    for commit in new:
        await other.commit(key, commit)
    if loaded:
        await store.load(key, ASK)
    assert await recalled(store, key) == await recalled(other, key)


@pytest.mark.parametrize("here", [False, True], ids=["read", "written"])
async def test_of_an_index_that_is_known_and_lost_nothing_is_taken_for_true(
    store: Backend,
    other: Backend,
    key: SessionKey,
    clock: Clock,
    lag: Callable[[], Callable[[], None]],
    here: bool,
) -> None:
    """The lost message and the other one are of the same length, and at the same place."""
    owner, known = Owner(key.tenant, user="kai"), IndexCache(store)
    terms = [next(iter(analyse(word, 0.0).terms)) for word in ("boat", "soup")]
    writer = Indexer(store, store, typed_text_of, clock, on_write=known.on_write)
    another = Indexer(other, other, typed_text_of, clock)
    await store.commit(key, said("x1", "A red boat.", user="kai"))
    await writer.index_session(key)
    await known.lookup(owner, terms)
    fail_over = lag()
    await store.commit(key, said("lost", "A new boat.", user="kai"))
    await (writer if here else another).index_session(key)
    for _ in range(2):  # what others have written is known with the second look
        await known.lookup(owner, terms)
    fail_over()
    await other.commit(key, said("new", "A hot soup.", user="kai"))
    await another.index_session(key)
    expected = await other.lookup(owner, terms, 100, session=key.session)
    assert (await known.lookup(owner, terms, key.session)).lookup == expected


class Writer:
    """Another process, which indexes and embeds all that is said in a session."""

    def __init__(self, store: Backend, key: SessionKey, clock: Clock) -> None:
        self.store, self.key, self.owner = store, key, Owner(key.tenant, user="kai")
        self.embedder = Meanings()
        self.indexer = Indexer(store, store, typed_text_of, clock)
        self.backfill = EmbeddingBackfill(store, store, self.embedder, typed_text_of, clock)

    async def says(self, id: str, text: str) -> None:
        await self.store.commit(self.key, said(id, text, user="kai"))
        await self.indexer.index_session(self.key)

    async def state(self) -> State:
        state = read_state((await self.store.lookup(self.owner, (), 0)).state)
        assert state is not None
        return state

    async def near(self, shelf: VectorCache) -> bytes:
        """The vectors that somebody goes by, with all that is there now embedded."""
        await embed_all(self.backfill, self.owner)
        size = self.embedder.dimensions
        name = vector_set_name(self.embedder.model, size)
        return (await shelf.matrix(self.owner, name, size, await self.state())).data.tobytes()


@pytest.fixture
def writer(other: Backend, key: SessionKey, clock: Clock) -> Writer:
    return Writer(other, key, clock)


@pytest.mark.parametrize("new", [("soup",), ("soup", "rain"), ("soup", "boat")])
async def test_vectors_that_are_known_and_lost_are_not_searched(
    store: Backend, writer: Writer, lag: Callable[[], Callable[[], None]], new: tuple[str, ...]
) -> None:
    shelf = VectorCache(store)
    await writer.says("x1", "A puppy.")
    fail_over = lag()
    await writer.says("lost", "A boat.")
    await writer.near(shelf)
    fail_over()
    for id, word in enumerate(new):
        await writer.says(f"new{id}", f"A {word}.")
    assert await writer.near(shelf) == await writer.near(VectorCache(store))


async def test_what_is_lost_while_it_is_embedded_leaves_its_place_to_what_comes(
    store: Backend,
    writer: Writer,
    lag: Callable[[], Callable[[], None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await writer.says("x1", "A puppy.")
    await writer.near(VectorCache(store))
    fail_over = lag()
    await writer.says("lost", "A boat.")
    embed = writer.embedder.embed

    async def lose(texts: Sequence[str]) -> Array:
        monkeypatch.undo()
        fail_over()
        return await embed(texts)

    monkeypatch.setattr(writer.embedder, "embed", lose)
    await writer.near(VectorCache(store))
    await writer.says("new", "A soup.")
    alone = await writer.embedder.embed(["A puppy.", "A soup."])
    assert await writer.near(VectorCache(store)) == b"".join(pack(alone))


@pytest.fixture
def workshop(store: Backend, key: SessionKey, clock: Clock) -> Workshop:
    return Workshop(store, key, clock, max_input_tokens=200)


@pytest.mark.parametrize("at_once", [True, False], ids=["meanwhile", "later"])
async def test_a_summary_of_what_is_lost_covers_nothing_that_comes_in_its_place(
    workshop: Workshop, lag: Callable[[], Callable[[], None]], at_once: bool
) -> None:
    await workshop.talk_behind(1, 1)
    fail_over = lag()
    await workshop.talk_behind(2, 4)

    async def lose() -> None:
        fail_over()
        if at_once:
            await workshop.talk_behind(6, 9)

    workshop.narrator.meanwhile = lose
    await workshop.run()
    if not at_once:
        await workshop.talk_behind(6, 9)
        await workshop.run()

    assert await workshop.told() == [*ids(1, 1), "xe1.0", "xe1.1", *ids(6, 9)]


async def test_a_summary_that_is_written_anew_does_not_go_on_from_what_is_lost(
    workshop: Workshop, lag: Callable[[], Callable[[], None]]
) -> None:
    await workshop.talk_behind(1, 1)
    await workshop.run()
    fail_over = lag()
    await workshop.talk_behind(2, 15)
    workshop.narrator.answers += [narrate, Failed("503")]
    with pytest.raises(Failed):
        await workshop.summarizer.rebuild(workshop.work)
    fail_over()
    await workshop.talk_behind(16, 35)

    assert await workshop.summarizer.rebuild(workshop.work) is None

    assert await workshop.told() == [*ids(1, 1), "xe1.0", "xe1.1", *ids(16, 35)]
