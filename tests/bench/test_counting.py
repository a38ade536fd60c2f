"""Budgets are counted in o200k tokens where that is at hand, and in something close where not."""

from __future__ import annotations

import pytest

from bench.recall import counting


def test_tokens_are_o200k() -> None:
    count = counting.counter()
    assert count("hello world") == 2
    assert count("") == 0


def test_without_the_package_the_proxy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(counting, "import_module", missing)
    assert counting.counter()("hello world") == 2
