"""A long log is read from Redis in pieces, as it was at one moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.memory.model import Commit, LoadOptions, SessionKey
from proxy.memory.store import StoreError, StoreTimeout
from proxy.stores.address import read_address
from proxy.stores.redis.connection import connect
from proxy.stores.redis.read import LONG, PIECE, TRIES
from proxy.stores.redis.store import RedisStore
from proxy.stores.redis.wire import MANY_ARGUMENTS, encode, encode_in_pieces
from tests.support.processes import redis as servers
from tests.support.processes.redis import Server
from tests.support.store.commits import chat, draft, record
from tests.support.waiting import PATIENCE

KEY = SessionKey("tenant", "session")
WHOLE = LoadOptions(profile="default", whole=True, max_messages=4)
ALL = LoadOptions(profile="default")
EACH = pytest.mark.parametrize("options", [WHOLE, ALL], ids=["whole", "window"])


def long(id: str, size: int) -> Commit:
    """An exchange of so many messages, each a turn."""
    drafts = tuple(draft(id, n, turn=f"{id}.{n}") for n in range(size))
    return record(id, *drafts)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with servers.standalone() as server:
        yield server


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    server.ask("FLUSHALL")
    link = connect(read_address(server.url), PATIENCE)
    store = RedisStore("redis", link, one_slot=True, timeout=PATIENCE, commit_timeout=PATIENCE)
    yield store
    await store.close()


@dataclass
class Meanwhile:
    """Does something between a store's first look and the next piece, so many times."""

    store: RedisStore
    act: Callable[[int], Any]
    times: int = 1
    looks: list[str] = field(default_factory=list)

    def __enter__(self) -> Meanwhile:
        scripts = self.store._scripts
        self.read = read = scripts.read

        async def between(script: Any, keys: Any, arguments: Any) -> Any:
            reply = await read(script, keys, arguments)
            if script is scripts.load and reply != [LONG]:
                self.looks.append("first")
                if len(self.looks) <= self.times:
                    await self.act(len(self.looks))
            return reply

        scripts.read = between  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self.store._scripts.read = self.read  # type: ignore[method-assign]


def choosing(id: str, *, before: int = 0) -> Commit:
    """A reply with three choices, of which the second is the log's, behind so many messages."""
    asked = tuple(draft(id, n) for n in range(before))
    first, second, third = (
        replace(each, state="active" if n == 1 else "superseded")
        for n, each in enumerate(
            draft(id, before + n, "assistant", origin="response", choice=n) for n in range(3)
        )
    )
    return record(id, *asked, first, second, third)


@pytest.mark.parametrize(
    ("exchanges", "before"),
    [
        pytest.param(PIECE // 3, 0, id="a-piece"),
        pytest.param(PIECE // 3 + 1, 0, id="more"),
        pytest.param(PIECE + 1, 0, id="more-exchanges"),
        pytest.param(2, PIECE, id="long-exchanges"),
    ],
)
async def test_all_choices_are_read_however_many(
    store: RedisStore, exchanges: int, before: int
) -> None:
    for n in range(exchanges):
        await store.commit(KEY, choosing(f"x{n}", before=before))
    alternates = (await store.load(KEY, WHOLE)).alternates
    assert {name: [e.card.choice for e in group] for name, group in alternates.items()} == {
        f"x{n}": [0, 2] for n in range(exchanges)
    }


async def test_choices_that_change_meanwhile_are_read_again(store: RedisStore) -> None:
    for n in range(PIECE + 1):
        await store.commit(KEY, choosing(f"x{n}"))

    async def act(n: int) -> None:
        other = chat(f"y{n}", superseded=("x7.1",), activated=("x7.2",))
        await store.commit(KEY, other)

    with Meanwhile(store, act) as meanwhile:
        alternates = (await store.load(KEY, WHOLE)).alternates
    assert meanwhile.looks == ["first", "first"]
    assert [e.card.choice for e in alternates["x7"]] == [0, 1]


async def test_a_turn_of_very_many_messages_is_read_in_pieces_or_not_at_all(
    store: RedisStore,
) -> None:
    size = 8_000
    assert await store.commit(KEY, record("x", *(draft("x", n) for n in range(size))))
    assert await store.commit(KEY, record("y", *(draft("y", n, turn="x.0") for n in range(size))))
    options = LoadOptions(profile="default", max_messages=4)
    before = await store.load(KEY, options)
    assert len(before.log) == len(before.bodies) == 2 * size
    third = record("z", *(draft("z", n, turn="x.0") for n in range(size + 1)))
    assert await store.commit(KEY, third) == "recorded"
    assert len((await store.load(KEY, options)).log) == 3 * size + 1  # two thirds of it were known
    store._logs.clear()
    with pytest.raises(StoreTimeout, match="too long"):
        await store.load(KEY, options)
    whole = await store.load(KEY, WHOLE)
    assert (len(whole.log), whole.bodies, whole.missing_messages) == (3 * size + 1, {}, 0)


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_all_of_a_log_is_read_whatever_its_length(store: RedisStore, size: int) -> None:
    assert await store.commit(KEY, long("x", size)) == "recorded"
    snapshot = await store.load(KEY, WHOLE)
    assert [e.card.id for e in snapshot.log] == [f"x.{n}" for n in range(size)]
    assert [e.position.seq for e in snapshot.log] == list(range(1, size + 1))
    assert (snapshot.messages, snapshot.missing_messages) == (size, 0)
    assert len(snapshot.bodies) == min(size, PIECE)


@EACH
async def test_what_is_appended_meanwhile_is_left_out(
    store: RedisStore, options: LoadOptions
) -> None:
    await store.commit(KEY, long("x", 2 * PIECE))
    with Meanwhile(store, lambda n: store.commit(KEY, chat(f"y{n}"))) as meanwhile:
        snapshot = await store.load(KEY, options)
    assert len(snapshot.log) == snapshot.messages == 2 * PIECE and not snapshot.missing_messages
    assert len(meanwhile.looks) == 1
    assert len((await store.load(KEY, options)).log) == 2 * PIECE + 2


@EACH
async def test_a_late_answer_that_moves_places_is_read_once(
    store: RedisStore, options: LoadOptions
) -> None:
    await store.commit(KEY, long("x", 2 * PIECE))

    async def joins(n: int) -> None:
        late = replace(draft(f"y{n}", 0), turn="x.3")
        await store.commit(KEY, record(f"y{n}", late))

    with Meanwhile(store, joins):
        snapshot = await store.load(KEY, options)
    assert [e.card.id for e in snapshot.log] == [f"x.{n}" for n in range(2 * PIECE)]


@EACH
async def test_a_log_that_is_changed_meanwhile_is_read_again(
    store: RedisStore, options: LoadOptions
) -> None:
    await store.commit(KEY, long("x", 2 * PIECE))

    async def edited(n: int) -> None:
        await store.commit(KEY, replace(chat(f"y{n}"), superseded=(f"x.{n}",)))

    with Meanwhile(store, edited, times=2) as meanwhile:
        snapshot = await store.load(KEY, options)
    ids = [e.card.id for e in snapshot.log]
    assert len(meanwhile.looks) == 3 and len(ids) == snapshot.messages == 2 * PIECE + 2
    assert not {"x.1", "x.2"} & set(ids)
    store._logs.clear()
    with Meanwhile(store, lambda n: edited(n + 10), times=TRIES), pytest.raises(StoreError):
        await store.load(KEY, options)


async def test_no_script_reads_or_writes_more_keys_at_once_than_a_piece_has(
    server: Server, store: RedisStore
) -> None:
    """Commands are counted, not seconds: 4 times the messages, 4 times the pieces."""

    async def calls(size: int) -> int:
        await store.commit(KEY, long(f"x{size}", size))
        server.ask("CONFIG", "RESETSTAT")
        await store.load(KEY, WHOLE)
        stats = server.ask("INFO", "commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    assert await calls(PIECE) == 1
    assert await calls(3 * PIECE) == 4


async def test_a_tenant_reads_one_long_window_at_a_time_and_none_twice(
    server: Server, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [
        SessionKey(tenant, id) for tenant in ("one", "other") for id in ("session-a", "session-b")
    ]
    for key in keys:
        await store.commit(key, long("x", 2 * PIECE + 1))
    store._logs.clear()
    scripts, read = store._scripts, store._scripts.read
    running, most, pieces = Counter[bytes](), Counter[bytes](), 0

    async def counted(script: Any, keys: Any, arguments: Any) -> Any:
        nonlocal pieces
        tenant, is_piece = keys[0].partition(b":session")[0], script is scripts.load_more
        pieces += is_piece
        running[tenant] += is_piece
        most[tenant] = max(most[tenant], running[tenant])
        reply = await read(script, keys, arguments)
        running[tenant] -= is_piece
        return reply

    monkeypatch.setattr(scripts, "read", counted)
    loaded = await asyncio.gather(*(store.load(key, ALL) for key in [*keys, *keys]))
    ids = [f"x.{n}" for n in range(2 * PIECE + 1)]
    assert all([each.card.id for each in snapshot.log] == ids for snapshot in loaded)
    assert all(list(snapshot.bodies) == ids for snapshot in loaded)
    assert pieces == 2 * len(keys)
    assert dict(most) == dict.fromkeys(most, 1) and len(most) == 2


@pytest.mark.parametrize(("many", "threads"), [(100, 0), (3 * MANY_ARGUMENTS + 7, 1)])
async def test_a_command_of_many_arguments_is_encoded_in_pieces_in_a_thread(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, many: int, threads: int
) -> None:
    used, in_thread = list[object](), asyncio.to_thread

    async def counting(work: Callable[..., Any], *arguments: Any) -> Any:
        used.append(work)
        return await in_thread(work, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", counting)
    command = ("RPUSH", b"list", *range(many), b"", "é", 0.5)
    assert encode_in_pieces([command, ("PING",)]) == encode([command, ("PING",)])
    assert await store._link.run(b"list", command, ("LLEN", b"list")) == [many + 3] * 2
    assert len(used) == threads
