"""What changes thousands of messages is done in steps, each within what a store does at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from proxy.memory.archive import Revision
from proxy.memory.model import Commit, LoadOptions, SessionKey
from proxy.memory.store import StoreError
from proxy.stores.common import steps
from proxy.stores.common.steps import SWITCHED_AT_ONCE, commit_steps, revision_steps
from proxy.stores.open import Backend
from tests.support.store.archives import revise
from tests.support.store.commits import chat, draft, record

ALL = LoadOptions(profile="default", whole=True)
FEW = 3


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SWITCHED_AT_ONCE", FEW)


def many(id: str, size: int) -> tuple[str, ...]:
    return tuple(f"{id}.{n}" for n in range(size))


async def ten(store: Backend, key: SessionKey, **fields: Any) -> tuple[str, ...]:
    """Ten messages, each a turn; their ids."""
    drafts = (draft("x", n, turn=f"x.{n}") for n in range(10))
    await store.commit(key, record("x", *drafts, **fields))
    return many("x", 10)


async def log(store: Backend, key: SessionKey) -> list[str]:
    return [entry.card.id for entry in (await store.load(key, ALL)).log]


@pytest.mark.parametrize("size", [0, 1, SWITCHED_AT_ONCE])
def test_what_is_little_is_one_step(size: int) -> None:
    commit = chat("y", superseded=many("x", size))
    assert commit_steps(commit) == [commit]
    revision = Revision(activated=many("x", size))
    assert revision_steps(revision) == [revision]


def test_the_newest_go_first_and_the_oldest_come_back_first() -> None:
    gone, back = many("x", 2 * SWITCHED_AT_ONCE + 1), many("z", SWITCHED_AT_ONCE + 1)
    *ahead, last = commit_steps(chat("y", superseded=gone, activated=back))
    assert [each.superseded for each in ahead[:3]] == [
        gone[-SWITCHED_AT_ONCE:],
        gone[1:-SWITCHED_AT_ONCE],
        gone[:1],
    ]
    assert [each.activated for each in ahead[3:]] == [back[:-1]]
    assert not any(each.drafts for each in ahead)
    assert (last.superseded, last.activated) == ((), back[-1:]) and len(last.drafts) == 2
    assert all(len(s.superseded) + len(s.activated) <= SWITCHED_AT_ONCE for s in [*ahead, last])


@pytest.mark.usefixtures("small")
async def test_a_commit_in_steps_is_as_one_at_once(store: Backend, key: SessionKey) -> None:
    ids = await ten(store, key)
    assert await store.commit(key, chat("y", superseded=ids[1:])) == "recorded"
    seen = await store.load(key, ALL)
    assert await log(store, key) == ["x.0", "y.0", "y.1"]
    assert (seen.messages, seen.last and seen.last.id) == (3, "y")
    back = chat("z", superseded=("y.0", "y.1"), activated=ids)
    assert await store.commit(key, back) == "recorded"
    assert await log(store, key) == [*ids, "z.0", "z.1"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("outcome", "late"),
    [
        ("foreign", chat("y", user="eve", superseded=many("x", 10))),
        ("duplicate", chat("x", superseded=many("x", 10))),
    ],
)
async def test_what_is_refused_changes_nothing(
    store: Backend, key: SessionKey, outcome: str, late: Commit
) -> None:
    ids = await ten(store, key, user="kai")
    assert await store.commit(key, late) == outcome
    assert await log(store, key) == list(ids)


@pytest.mark.usefixtures("small")
async def test_a_session_that_is_gone_comes_anew(store: Backend, key: SessionKey) -> None:
    assert await store.commit(key, chat("y", superseded=many("x", 10))) == "recorded"
    assert await log(store, key) == ["y.0", "y.1"]


@pytest.mark.usefixtures("small")
async def test_who_is_cut_off_between_two_steps_does_the_rest_later(
    store: Backend, key: SessionKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await ten(store, key)
    commit = chat("y", superseded=ids[1:])
    step = "_commit" if hasattr(store, "_commit") else "_write_and_reload"
    work: Callable[..., Awaitable[Any]] = getattr(store, step)
    done: list[object] = []

    async def once(*args: Any, **fields: Any) -> Any:
        if done:
            raise StoreError("cut off")
        done.append(await work(*args, **fields))
        return done[0]

    with monkeypatch.context() as cut:
        cut.setattr(store, step, once)
        with pytest.raises(StoreError):
            await store.commit(key, commit)
    assert await log(store, key) == list(ids[:-FEW])
    assert await store.commit(key, commit) == "recorded"
    assert await log(store, key) == ["x.0", "y.0", "y.1"]


@pytest.mark.usefixtures("small")
async def test_a_revision_in_steps_is_as_one_at_once(store: Backend, key: SessionKey) -> None:
    ids = await ten(store, key)
    assert await revise(store, key, superseded=ids[1:])
    assert await log(store, key) == ["x.0"]
    assert await revise(store, key, activated=ids)
    assert await log(store, key) == list(ids)
    nowhere = SessionKey(key.tenant, "nowhere")
    assert not await revise(store, nowhere, superseded=ids)


@pytest.mark.usefixtures("small")
async def test_a_revision_in_steps_is_for_the_log_that_its_first_one_finds(
    store: Backend, key: SessionKey
) -> None:
    ids = await ten(store, key)
    session = await store.session(key)
    assert session is not None
    await store.commit(key, chat("y"))
    assert not await revise(store, key, superseded=ids, log_size=session.log_size)
    assert await log(store, key) == [*ids, "y.0", "y.1"]
    session = await store.session(key)
    assert session is not None
    assert await revise(store, key, superseded=ids, log_size=session.log_size)
    assert await log(store, key) == ["y.0", "y.1"]
