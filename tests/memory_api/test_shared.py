"""The same asked for by many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.memory.store import StoreError, StoreTimeout
from proxy.memory_api.overview.shared import Shared


class Maker:
    """Makes answers that say the how manyth they are, each as long as it is not let go."""

    def __init__(self) -> None:
        self.made, self.most, self._now = 0, 0, 0
        self.goes_on = asyncio.Event()

    async def __call__(self) -> int:
        self.made += 1
        number, self._now = self.made, self._now + 1
        self.most = max(self.most, self._now)
        try:
            await self.goes_on.wait()
        finally:
            self._now -= 1
        return number


def asking(
    shared: Shared[int], question: str, make: Callable[[], Awaitable[int]]
) -> asyncio.Task[int]:
    return asyncio.create_task(shared.answer(question, make))


async def test_who_waits_is_given_what_was_begun_since_they_came() -> None:
    shared, make = Shared[int](), Maker()
    first = asking(shared, "a", make)
    await asyncio.sleep(0)
    others = [asking(shared, "a", make) for _ in range(5)]
    await asyncio.sleep(0)
    make.goes_on.set()
    assert await first == 1
    assert await asyncio.gather(*others) == [2] * 5
    assert await shared.answer("a", make) == 3, "what was there before is no answer"


async def test_other_questions_have_their_own_answers_one_at_a_time() -> None:
    shared, make = Shared[int](), Maker()
    asked = [asking(shared, question, make) for question in "abc"]
    make.goes_on.set()
    assert await asyncio.gather(*asked) == [1, 2, 3]
    assert make.most == 1


async def test_who_fails_or_leaves_keeps_nobody_from_an_answer() -> None:
    async def failing() -> int:
        await asyncio.sleep(0)
        raise ValueError

    shared, make = Shared[int](), Maker()
    leaves, fails = asking(shared, "a", make), asking(shared, "a", failing)
    goes_on = asking(shared, "a", make)
    await asyncio.sleep(0)
    leaves.cancel()
    with pytest.raises(ValueError):
        await fails
    make.goes_on.set()
    assert await goes_on == 2


async def test_who_waits_for_a_store_that_hangs_shares_its_failure() -> None:
    shared, make = Shared[int](), Maker()

    async def hanging() -> int:
        await make()
        raise StoreTimeout("no answer in time")

    asked = [asking(shared, "a", hanging) for _ in range(20)]
    other = asking(shared, "b", hanging)
    await asyncio.sleep(0)
    make.goes_on.set()
    failures = await asyncio.gather(*asked, other, return_exceptions=True)
    assert [type(failure) for failure in failures] == [StoreTimeout] * 21
    assert make.made == 3, "the first one, all who came meanwhile, and the other question"
    with pytest.raises(StoreError):
        await shared.answer("b", hanging)
    assert make.made == 4, "who comes later has a try of their own"
