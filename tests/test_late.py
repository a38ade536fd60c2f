"""What is loaded late is there when it is used, and not before."""

from __future__ import annotations

import sys

import pytest

from proxy.late import late
from tests.support.program import ran

HEAVY = ("aiohttp", "redis", "numpy", "tiktoken", "uvicorn", "starlette")


def loaded_by(statements: str) -> set[str]:
    """Which of the heavy ones are there behind them."""
    names = ran(
        f"import sys; {statements}; print(*(n for n in {HEAVY} if n in sys.modules))"
    ).stdout
    return set(names.split())


def test_the_command_line_loads_nothing_of_the_proxy_before_it_is_used() -> None:
    assert loaded_by("import proxy.cli") == set()


def test_a_supervisor_loads_what_looks_after_workers_and_nothing_of_theirs() -> None:
    assert loaded_by("import proxy.cli, proxy.factory, proxy.preflight, proxy.server") == {
        "uvicorn"
    }


def test_it_is_loaded_at_the_first_use() -> None:
    used = "from proxy.late import late; check = late('proxy.check'); print(check.Finding.__name__)"
    assert ran(used).stdout.strip() == "Finding"


def test_what_is_there_is_taken() -> None:
    assert late(__name__) is sys.modules[__name__]


def test_what_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"proxy\.nothing"):
        late("proxy.nothing")
