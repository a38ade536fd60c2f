"""Servers that answer and are no store: their user may do too little, or they lack some keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.memory.model import LoadOptions, SessionKey
from proxy.memory.store import StoreError
from proxy.stores.address import read_address
from proxy.stores.open import Backend, open_store
from proxy.stores.redis import scripts
from proxy.stores.redis.base import PARTS, session_keys
from tests.support.processes.redis import HOST, Server, standalone, wait_until
from tests.support.store.commits import chat
from tests.support.waiting import PATIENCE

FOLDER = Path(scripts.__file__).parent / "scripts"

ELSEWHERE = {"TIME", "DUMP", "RESTORE", "RENAME"}
"""What only looks at the clock, moves a tenant or puts a session back."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with standalone() as server:
        yield server


def store_of(server: Server, *rules: str) -> Backend:
    server.ask("ACL", "SETUSER", "memory", "reset", "on", ">secret", *rules)
    url = f"redis://memory:secret@{server.address}"
    return open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)


def test_no_script_negates_a_number_that_may_be_0() -> None:
    """Servers before 7 write the negative of 0 as "-0", which is no integer."""
    negated = re.compile(r"[(,=]\s*-\s*[a-z]")
    for path in FOLDER.glob("*.lua"):
        for line in path.read_text("utf-8").splitlines():
            code = line.partition("--")[0]
            assert "GETRANGE" in code or not negated.search(code), (path.name, line)


def test_all_that_scripts_do_is_tried() -> None:
    texts = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.lua")}
    check = texts.pop("check_commands")
    done = {name for text in texts.values() for name in re.findall(r"call\('([A-Z]+)'", text)}
    assert done - set(re.findall(r"\b[A-Z]+\b", check)) == ELSEWHERE


@pytest.mark.parametrize("rule", ["-eval", "-@scripting", "-zadd", "-unlink", "-hset", "-expire"])
async def test_a_store_that_cannot_be_written_with_scripts_does_not_work(
    server: Server, rule: str, key: SessionKey
) -> None:
    store = store_of(server, "~*", "+@all", rule)
    for of in (None, key):
        with pytest.raises(StoreError, match="may not|no permissions"):
            await store.ping(of)
    wait_until(lambda: not server.ask("KEYS", "*"), "nothing is left")
    await store.close()


async def test_a_user_of_these_keys_without_dangerous_commands_is_enough(
    server: Server, key: SessionKey
) -> None:
    store = store_of(server, "~mp:*", "+@all", "-@dangerous")
    await store.ping(key)
    assert await store.commit(key, chat("x1", user="kai")) == "recorded"
    assert not [told for told in await store.warnings() if "clock" not in told]
    assert await store.delete(key)
    await store.close()


@pytest.mark.xdist_group("redis-cluster")
async def test_no_server_of_a_cluster_works_alone(redis_cluster_url: str, key: SessionKey) -> None:
    for node in read_address(redis_cluster_url).nodes:
        url = "redis://{}:{}".format(*node)
        store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
        for of in (None, key):
            with pytest.raises(StoreError, match=re.escape("write redis+cluster://")):
                await store.ping(of)
        await store.close()


async def test_a_sentinel_and_a_server_are_told_apart(server: Server, tmp_path: Path) -> None:
    sentinel = Server(tmp_path, {}, f"sentinel monitor main {HOST} {server.port} 1")
    sentinel.start()
    watched = f"redis+sentinel://{server.address}/main"
    wrong = {sentinel.url: "write redis+sentinel://", watched: "is no Sentinel"}
    try:
        for url, told in wrong.items():
            store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE)
            with pytest.raises(StoreError, match=re.escape(told)):
                await store.ping()
            await store.close()
    finally:
        sentinel.stop(kill=True)


@pytest.mark.parametrize("part", ["cards", "log", "active", "exchanges"])
async def test_what_is_refused_half_way_is_recorded_when_it_comes_again(
    server: Server, part: str, key: SessionKey
) -> None:
    """Another program has written under a name of ours."""
    store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    assert await store.commit(key, chat("x1")) == "recorded"
    taken = dict(zip(PARTS, session_keys(key), strict=True))[part.encode()]
    server.ask("RENAME", taken, "aside")
    server.ask("SET", taken, "a text")
    for _ in range(2):
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await store.commit(key, chat("x2"))
    server.ask("RENAME", "aside", taken)
    assert await store.commit(key, chat("x2")) == "recorded"
    log = (await store.load(key, LoadOptions(profile="default", whole=True))).log
    assert [entry.card.id for entry in log] == ["x1.0", "x1.1", "x2.0", "x2.1"]
    await store.close()
