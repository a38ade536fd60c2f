"""What is loaded late is there when it is used, and not before."""

from __future__ import annotations

import sys

import pytest

from proxy.lazy import lazy_import
from tests.support.processes.program import ran

HEAVY = (
    *("aiohttp", "redis", "numpy", "tiktoken", "uvicorn", "starlette", "mcp"),
    *("httpcore", "httpx2", "genai_prices", "jsonschema.validators", "pygments"),
)


def loaded_by(statements: str) -> set[str]:
    """Which of the heavy ones are there behind them."""
    names = ran(
        f"import sys; {statements}; print(*(n for n in {HEAVY} if n in sys.modules))"
    ).stdout
    return set(names.split())


def test_a_proxy_loads_no_client_and_no_back_end_that_it_was_not_set_to() -> None:
    serving = "import proxy.cli, proxy.server; from proxy.app import application"
    made = "from proxy.settings import Settings; application(Settings())"
    assert loaded_by(f"{serving}; {made}") == {"numpy", "tiktoken", "uvicorn", "starlette"}


def test_the_command_line_loads_nothing_of_the_proxy_before_it_is_used() -> None:
    assert loaded_by("import proxy.cli") == set()


def test_a_supervisor_loads_what_looks_after_workers_and_nothing_of_theirs() -> None:
    assert loaded_by("import proxy.cli, proxy.factory, proxy.preflight, proxy.server") == {
        "uvicorn"
    }


def test_it_is_loaded_at_the_first_use() -> None:
    made = "from proxy.lazy import lazy_import; check = lazy_import('proxy.check')"
    used = f"{made}; print(check.Finding.__name__)"
    assert ran(used).stdout.strip() == "Finding"


def test_what_is_there_is_taken() -> None:
    assert lazy_import(__name__) is sys.modules[__name__]


def test_what_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"proxy\.nothing"):
        lazy_import("proxy.nothing")
