"""Random changes to items: every back end must say what the oracle says, at every step."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from proxy.memory.erasure import Subject
from proxy.memory.items import Change, ItemOwner, Namespace, Place
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.stores.open import open_store
from tests.support.clock import Clock
from tests.support.oracle.store import InMemoryStore
from tests.support.waiting import PATIENCE

T = TypeVar("T")

LABELS = st.sampled_from(["a", "b", "ab", "a b", "ä", "漢"])
NAMESPACES = st.lists(LABELS, max_size=3).map(tuple)
PLACES = st.builds(Place, NAMESPACES, st.sampled_from(["", "a", "k", "k2", "é"]))
CHANGES = st.builds(
    lambda place, value, after, expires_at: Change(
        namespace=place.namespace, key=place.key, value=value, after=after, expires_at=expires_at
    ),
    PLACES,
    st.sampled_from([b"{}", b'{"a":1}', b"", b"\x00 \xff", None]),
    st.sampled_from([None, None, None, 0, 0, 1, 2]),
    st.sampled_from([None, None, 2000.0, 2001.5, 2003.0, 1e12]),
)
BATCHES = st.lists(CHANGES, max_size=4, unique_by=lambda c: (c.namespace, c.key))
USERS = st.sampled_from(["", "kai"])
SINCE = st.sampled_from([None, None, 1000.0, 1000.5, 1001.5])
DAYS = ("2026-01-01", "2026-01-02")
ACCOUNTS = st.builds(UsageKey, st.sampled_from(DAYS), st.sampled_from(["summary", "facts"]))
FIGURES = st.integers(0, 9)
SPENT = st.builds(
    UsageTotals, calls=FIGURES, failed=FIGURES, input_tokens=FIGURES, output_tokens=FIGURES
)


class Comparison(RuleBasedStateMachine):
    """The back end at ``url`` beside its oracle; two tenants of their own, two shelves each."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.clock = Clock(1999.0)
        self.tenants = [uuid.uuid4().hex for _ in range(2)]
        self.runner = asyncio.Runner()
        self.store = open_store(url, timeout=PATIENCE, commit_timeout=PATIENCE, clock=self.clock)
        self.oracle = InMemoryStore(self.clock)
        self.wait(self.store.open())

    def wait(self, work: Awaitable[T]) -> T:
        async def waiting() -> T:
            return await work

        return self.runner.run(waiting())

    def teardown(self) -> None:
        for tenant in self.tenants:
            self.compare(tenant)
            self.wait(self.store.unmark(Subject(tenant, "kai")))
            for user in ("", "kai"):
                self.wait(self.store.drop_items(ItemOwner(tenant, user), ()))
        self.wait(self.store.close())
        self.runner.close()

    @rule(n=st.integers(0, 1), user=USERS, changes=BATCHES, since=SINCE)
    def change(self, n: int, user: str, changes: list[Change], since: float | None) -> None:
        shelf = ItemOwner(self.tenants[n], user)
        self.clock.now += 2**-10  # no two tenants have one and the same item
        expected = self.wait(self.oracle.change_items(shelf, changes, since))
        assert self.wait(self.store.change_items(shelf, changes, since)) == expected

    @rule(n=st.integers(0, 1), user=USERS, skipped=st.integers(0, 2), since=SINCE)
    def adopt(self, n: int, user: str, skipped: int, since: float | None) -> None:
        """Some of what the tenant's other shelf has."""
        source, target = (
            ItemOwner(self.tenants[n], each) for each in ("kai" if not user else "", user)
        )
        coming = self.wait(self.oracle.items(source, (), None, 1000)).items[skipped:]
        expected = self.wait(self.oracle.adopt_items(target, coming, since))
        assert self.wait(self.store.adopt_items(target, coming, since)) == expected
        self.compare(self.tenants[n])

    @rule(n=st.integers(0, 1), until=st.sampled_from([1000.0, 1001.0, None]))
    def mark(self, n: int, until: float | None) -> None:
        kai = Subject(self.tenants[n], "kai")
        for store in (self.oracle, self.store):
            self.wait(store.unmark(kai) if until is None else store.mark([kai], until))

    @rule(n=st.integers(0, 1), began=SINCE)
    def lift(self, n: int, began: float | None) -> None:
        kai = Subject(self.tenants[n], "kai")
        for store in (self.oracle, self.store):
            self.wait(store.unmark(kai, began))

    @rule(n=st.integers(0, 1), user=USERS, places=st.lists(PLACES, max_size=4, unique=True))
    def look(self, n: int, user: str, places: list[Place]) -> None:
        shelf = ItemOwner(self.tenants[n], user)
        expected = self.wait(self.oracle.items_at(shelf, places))
        assert self.wait(self.store.items_at(shelf, places)) == expected

    @rule(
        user=USERS,
        prefix=NAMESPACES,
        after=st.none() | PLACES,
        limit=st.sampled_from([1, 2, 3, 50]),
    )
    def list(self, user: str, prefix: Namespace, after: Place | None, limit: int) -> None:
        shelf = ItemOwner(self.tenants[0], user)
        expected = self.wait(self.oracle.items(shelf, prefix, after, limit))
        assert self.wait(self.store.items(shelf, prefix, after, limit)) == expected
        behind = after.namespace if after else None
        named = self.wait(self.oracle.namespaces(shelf, prefix, behind, limit))
        assert self.wait(self.store.namespaces(shelf, prefix, behind, limit)) == named

    @rule(user=USERS, prefix=NAMESPACES)
    def drop(self, user: str, prefix: Namespace) -> None:
        shelf = ItemOwner(self.tenants[0], user)
        expected = self.wait(self.oracle.drop_items(shelf, prefix))
        assert self.wait(self.store.drop_items(shelf, prefix)) == expected

    @rule(now=st.sampled_from([2000.0, 2001.5, 2003.0]))
    def later(self, now: float) -> None:
        self.clock.now = max(self.clock.now, now)

    @rule(n=st.integers(0, 1), account=ACCOUNTS, spent=SPENT)
    def spend(self, n: int, account: UsageKey, spent: UsageTotals) -> None:
        self.wait(self.oracle.add_usage(self.tenants[n], account, spent))
        self.wait(self.store.add_usage(self.tenants[n], account, spent))

    @rule(n=st.integers(0, 1))
    def move(self, n: int) -> None:
        old, new = self.tenants[n], self.tenants[1 - n]
        assert self.wait(self.store.move(old, new)) == self.wait(self.oracle.move(old, new)) == 0
        self.compare(old)
        self.compare(new)

    def compare(self, tenant: str) -> None:
        for user in ("", "kai"):
            shelf = ItemOwner(tenant, user)
            expected = self.wait(self.oracle.items(shelf, (), None, 1000))
            assert self.wait(self.store.items(shelf, (), None, 1000)) == expected
        spent = self.wait(self.oracle.usage_of_days(tenant, DAYS))
        assert self.wait(self.store.usage_of_days(tenant, DAYS)) == spent


@pytest.mark.parametrize("url", ["sqlite", "redis", "redis-cluster"], indirect=True)
def test_a_back_end_does_with_items_what_the_oracle_does(url: str) -> None:
    class Machine(Comparison):
        def __init__(self) -> None:
            super().__init__(url)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
