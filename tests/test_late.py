"""What is loaded late is there when it is used, and not before."""

from __future__ import annotations

import sys

import pytest

from proxy.late import late
from tests.support.program import ran

HEAVY = ("aiohttp", "redis", "numpy", "tiktoken", "uvicorn", "starlette")


def test_the_command_line_loads_nothing_of_the_proxy_before_it_is_used() -> None:
    loaded = f"import sys, proxy.cli; print([n for n in {HEAVY} if n in sys.modules])"
    assert ran(loaded).stdout.strip() == "[]"


def test_it_is_loaded_at_the_first_use() -> None:
    used = "from proxy.late import late; check = late('proxy.check'); print(check.Finding.__name__)"
    assert ran(used).stdout.strip() == "Finding"


def test_what_is_there_is_taken() -> None:
    assert late(__name__) is sys.modules[__name__]


def test_what_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"proxy\.nothing"):
        late("proxy.nothing")
