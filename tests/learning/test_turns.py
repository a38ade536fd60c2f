"""Who changes the same shelf in one process takes turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from proxy.learning.collection import Busy, OwnerLocks, update
from proxy.learning.facts.fact import USER
from proxy.learning.facts.store import FactStore
from proxy.learning.facts.tools import FactTools
from proxy.memory.items import Change
from tests.support.learning.harness import KAI, Harness, count

EVE = KAI._replace(user="eve")


async def test_all_that_is_noted_at_once_is_kept_and_done_once(harness: Harness) -> None:
    locks, items, loads = OwnerLocks(), harness.store.items, 0

    async def counted(*asked: object) -> object:
        nonlocal loads
        loads += 1
        return await items(*asked)  # type: ignore[arg-type]

    harness.store.items = counted  # type: ignore[assignment, method-assign]
    stores = (FactStore(harness.store, count, harness.clock, locks) for _ in range(50))
    tools = [FactTools(each, harness.settings.facts) for each in stores]
    await asyncio.gather(*(one.add(KAI, f"Has {n} boats.", USER) for n, one in enumerate(tools)))
    assert loads == 50
    assert len(await harness.facts()) == 50


async def test_each_shelf_has_its_own_turns_which_end_with_their_last_user() -> None:
    locks = OwnerLocks()
    async with locks.hold(KAI), locks.hold(EVE):
        waiting = asyncio.create_task(_taken(locks))
        await asyncio.sleep(0)
        assert len(locks._locks) == 2 and not waiting.done()
    await waiting
    del waiting
    assert not locks._locks


async def test_who_is_cancelled_is_in_nobodys_way() -> None:
    locks, goes_on = OwnerLocks(), asyncio.Event()
    holding = asyncio.create_task(_taken(locks, goes_on))
    waiting = [asyncio.create_task(_taken(locks)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    holding.cancel()
    ended = await asyncio.gather(holding, *waiting, return_exceptions=True)
    assert [type(each) for each in ended[:2]] == [asyncio.CancelledError] * 2
    assert ended[2:] == [None, None]


async def test_who_waits_too_long_is_told_that_others_are_busy(harness: Harness) -> None:
    locks = OwnerLocks(timeout=0)

    async def step() -> tuple[str, Sequence[Change]]:
        return "done", ()

    async with locks.hold(KAI):
        with pytest.raises(Busy):
            await update(harness.store, locks, KAI, step)
        assert await update(harness.store, locks, EVE, step) == "done"
    assert await update(harness.store, locks, KAI, step) == "done"


async def _taken(locks: OwnerLocks, goes_on: asyncio.Event | None = None) -> None:
    async with locks.hold(KAI):
        if goes_on:
            await goes_on.wait()
