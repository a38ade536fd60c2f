"""Of what was erased, nothing stays in the caches of texts that facts are read with."""

from __future__ import annotations

from proxy.learning.facts import days, statements
from proxy.memory_api.erasure.caches import forget_texts


def test_what_facts_are_read_with_is_forgotten() -> None:
    assert statements.may_be_from("Paris", "I live in Paris since 2010")
    days.times_in("I live in Paris since 2010")
    assert days.times_in.cache_info().currsize
    assert statements._stems_of.cache_info().currsize
    forget_texts("tenant")
    assert not days.times_in.cache_info().currsize
    assert not statements._stems_of.cache_info().currsize
