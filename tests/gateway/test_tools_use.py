"""Which of memory's functions a request offers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.identity import Identity
from proxy.gateway.report import MemoryReport
from proxy.gateway.tools.use import ToolUse, offered_tools, tool_use
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings
from tests.support.talk.parsing import parse
from tests.support.upstream.tooling import SAVE, SEARCH

PROFILE = ProfileSettings.model_validate({"tools": {"enabled": True, "max_rounds": 2}})
BOTH = (SAVE, SEARCH)


def context(profile: ProfileSettings = PROFILE, **who: Any) -> RequestContext:
    return RequestContext(
        key=SessionKey("t", "s"),
        identity=Identity(session="s", **({"user": "kai"} | who)),
        profile_rules=ProfileRules.of(profile),
        fails_closed=False,
    )


def report(**more: Any) -> MemoryReport:
    return MemoryReport("s", **({"exchange": "ex", "status": "applied"} | more))


@pytest.mark.parametrize(
    ("who", "did", "names"),
    [
        pytest.param({}, {}, BOTH, id="on"),
        pytest.param({"mode": "read"}, {"exchange": None}, (SEARCH,), id="read"),
        pytest.param({"mode": "write"}, {}, (SAVE,), id="write"),
        pytest.param({"user": None}, {}, (), id="nobody-in-particular"),
        pytest.param({}, {"status": "degraded"}, (), id="memory-has-failed"),
        pytest.param({}, {"exchange": None, "reason": "side_request"}, (), id="a-title-request"),
        pytest.param(
            {"mode": "read"},
            {"exchange": None, "reason": "side_request"},
            (),
            id="a-title-request-that-reads",
        ),
        pytest.param({}, {"exchange": None, "reason": "stale_retry"}, (), id="a-stale-retry"),
        pytest.param({}, {"reason": "spooled"}, BOTH, id="earlier-turns-wait"),
    ],
)
def test_the_functions_are_those_that_the_request_may_use(
    who: dict[str, Any], did: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert offered_tools(context(**who), report(**did)) == names


def test_they_are_off_by_default() -> None:
    assert offered_tools(context(ProfileSettings()), report()) == ()


def test_a_use_knows_whose_it_is_and_the_clients_own_tools() -> None:
    own = [{"type": "function", "function": {"name": "f"}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": own}
    request = parse(json.dumps(body).encode())
    assert request is not None
    use = tool_use(request, context(), report(), len, 1000.0)
    assert isinstance(use, ToolUse)
    assert (use.names, use.rounds, json.loads(use.client_tools or b"")) == (BOTH, 2, own)
    whose = use.context
    assert (whose.key, whose.user, whose.exchange) == (("t", "s"), "kai", "ex")
    assert whose.began == 1000.0
    sent = json.loads(use.put_into(json.dumps(body).encode()))
    assert sent["tools"][:1] == own
    assert [tool["function"]["name"] for tool in sent["tools"][1:]] == list(BOTH)


def test_a_client_keeps_its_own_tool_of_that_name() -> None:
    tools = [{"type": "function", "function": {"name": SAVE}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools}
    request = parse(json.dumps(body).encode())
    assert request is not None
    assert tool_use(request, context(), report(), len, 1000.0) == "tool_name_taken"
