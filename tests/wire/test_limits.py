"""One tenant has half of the room at most, and whoever waits gets its turn."""

from __future__ import annotations

import asyncio
import random

import pytest

from proxy.errors import ProxyError
from proxy.wire import limits
from proxy.wire.limits import (
    CHANGE_RESERVE,
    SMALL,
    UNCOUNTED,
    ByteBudget,
    ByteBudgets,
    Reservation,
    release,
)

MIB = 1024 * 1024


async def took(room: ByteBudget, tenant: str, size: int) -> asyncio.Task[None]:
    """The attempt to take so many bytes, after everybody had a turn."""
    task = asyncio.create_task(room.take(tenant, size))
    await turns()
    return task


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def is_empty(room: ByteBudget) -> bool:
    return not (room._taken or room._taken_by or room._waiting or room._ready)


async def test_one_tenant_has_half_of_it_and_another_what_it_wants() -> None:
    room = ByteBudget(100)
    await room.take("a", 50)
    more = await took(room, "a", 1)
    assert not more.done()
    assert (await took(room, "b", 50)).done()
    room.give_back("a", 50)
    await turns()
    assert more.done()


async def test_all_of_them_have_no_more_than_there_is() -> None:
    room = ByteBudget(100)
    for tenant in "abcde":
        await room.take(tenant, 20)
    other = await took(room, "f", 20)
    assert not other.done()
    room.give_back("c", 20)
    await turns()
    assert other.done()


async def test_what_is_larger_than_half_gets_in_alone() -> None:
    room = ByteBudget(100)
    await room.take("a", 1)
    large = await took(room, "b", 500)
    assert not large.done()
    room.give_back("a", 1)
    await turns()
    assert large.done()
    assert not (await took(room, "a", 1)).done()


async def test_tenants_that_wait_have_their_turns_one_after_the_other() -> None:
    room, order = ByteBudget(100), []

    async def one(name: str, tenant: str) -> None:
        await room.take(tenant, 50)
        order.append(name)
        await turns()
        room.give_back(tenant, 50)

    await room.take("x", 50)
    await room.take("y", 50)
    names = ["a1", "a2", "a3", "b1", "c1"]
    waiting = [asyncio.create_task(one(name, name[0])) for name in names]
    await turns()
    room.give_back("x", 50)
    await asyncio.gather(*waiting)
    assert order == ["a1", "b1", "c1", "a2", "a3"]


async def test_one_that_waits_for_itself_holds_up_nobody() -> None:
    room = ByteBudget(100)
    await room.take("a", 50)
    own = await took(room, "a", 10)
    assert (await took(room, "b", 40)).done()
    assert not own.done()


async def test_who_waits_for_too_long_is_told_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "WAIT_SECONDS", 0.01)
    room = ByteBudget(100)
    await room.take("a", 100)
    with pytest.raises(ProxyError) as caught:
        await room.take("b", 1)
    assert (caught.value.status, caught.value.code) == (503, "overloaded")
    room.give_back("a", 100)
    assert is_empty(room)


async def test_who_leaves_while_it_waits_takes_nothing_along() -> None:
    room = ByteBudget(100)
    await room.take("a", 100)
    leaving = [await took(room, tenant, 30) for tenant in ("b", "c", "b")]
    leaving[0].cancel()
    await turns()
    room.give_back("a", 100)
    # The others were granted theirs this very moment, and are cancelled before they know.
    for each in leaving[1:]:
        each.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    assert is_empty(room)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_comes_and_goes_all_of_it_is_given_back(seed: int) -> None:
    drawn, room, most = random.Random(seed), ByteBudget(1000), 0

    async def one(tenant: str, size: int, pause: int) -> None:
        nonlocal most
        await room.take(tenant, size)
        most = max(most, room._taken)
        try:
            for _ in range(pause):
                await asyncio.sleep(0)
        finally:
            room.give_back(tenant, size)

    tasks = []
    for _ in range(300):
        size = drawn.randint(1, 400)
        tasks.append(asyncio.create_task(one(drawn.choice("abcdef"), size, drawn.randint(0, 9))))
        if drawn.random() < 0.2:
            drawn.choice(tasks).cancel()
        await asyncio.sleep(0)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert is_empty(room) and 0 < most <= 1000
    assert {type(end) for end in ends} == {type(None), asyncio.CancelledError}


async def test_large_bodies_take_no_room_from_small_ones() -> None:
    budgets = ByteBudgets(64 * MIB)
    holding = [budgets.reservation(tenant) for tenant in "abcd"]
    for each in holding[:2]:
        await each.reserve_body(16 * MIB)
    assert not (await took(budgets.large, "c", 2 * MIB)).done()
    await holding[2].reserve_body(SMALL)
    await holding[3].reserve_answer(CHANGE_RESERVE)


async def test_a_body_takes_what_it_has_and_not_what_it_said() -> None:
    budgets = ByteBudgets(64 * MIB)
    held = budgets.reservation("a")
    await held.reserve_body(16 * MIB)
    await held.reserve_body(2 * MIB)
    assert (budgets.large._taken, budgets.small._taken) == (2 * MIB, 0)
    await held.reserve_body(UNCOUNTED)
    assert is_empty(budgets.large)


async def test_what_is_left_of_a_body_waits_for_nothing() -> None:
    budgets = ByteBudgets(64 * MIB)
    held = budgets.reservation("a")
    held.shrink_body(2 * MIB)
    assert is_empty(budgets.large)
    await held.reserve_body(4 * MIB)
    held.shrink_body(2 * MIB)
    assert budgets.large._taken == 2 * MIB
    held.shrink_body(0)
    assert is_empty(budgets.large)


async def test_one_that_grows_leaves_the_room_of_the_small_ones() -> None:
    budgets = ByteBudgets(64 * MIB)
    held = budgets.reservation("a")
    await held.reserve_body(SMALL)
    await held.reserve_body(8 * MIB)
    assert (budgets.large._taken, budgets.small._taken) == (8 * MIB, 0)


async def test_what_memory_adds_has_room_at_once_or_not_at_all() -> None:
    budgets = ByteBudgets(16 * MIB)
    held, other = budgets.reservation("a"), budgets.reservation("a")
    await held.reserve_body(SMALL)
    held.grow_body(SMALL)
    held.grow_body(3 * MIB)
    assert (budgets.large._taken, budgets.small._taken) == (3 * MIB, 0)
    with pytest.raises(ProxyError) as caught:
        other.grow_body(2 * MIB)
    assert caught.value.code == "overloaded"
    await held.reserve_body(0)
    other.grow_body(2 * MIB)


async def test_an_answer_larger_than_was_thought_is_counted_as_it_is() -> None:
    budgets = ByteBudgets(64 * MIB)
    held = budgets.reservation("a")
    await held.reserve_answer(CHANGE_RESERVE)
    held.set_answer(2 * CHANGE_RESERVE)
    assert budgets.answers._taken == 2 * CHANGE_RESERVE
    held.set_answer(10)
    assert is_empty(budgets.answers)


async def test_a_request_that_ends_lets_go_of_everything_once() -> None:
    budgets = ByteBudgets(64 * MIB)
    scope: dict[str, object] = {}
    held = budgets.reserve_for(scope, "a")
    await held.reserve_body(2 * MIB)
    await held.reserve_answer(CHANGE_RESERVE)
    release(scope)
    release(scope)
    held.release()
    assert is_empty(budgets.large) and is_empty(budgets.answers)


async def test_no_bound_is_any_number_of_bytes() -> None:
    budgets = ByteBudgets(0)
    holding: list[Reservation] = [budgets.reservation("a") for _ in range(100)]
    for each in holding:
        await each.reserve_body(1 << 40)
