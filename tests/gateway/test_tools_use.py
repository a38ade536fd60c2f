"""Which of memory's functions a request offers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.request import parse
from proxy.gateway.account import Account
from proxy.gateway.identity import Identity
from proxy.gateway.profile import SideRequests
from proxy.gateway.situation import Situation
from proxy.gateway.tool_use import names_for, tool_use
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings
from tests.support.tooling import SAVE, SEARCH

PROFILE = ProfileSettings.model_validate({"tools": {"enabled": True, "max_rounds": 2}})
BOTH = (SAVE, SEARCH)


def situation(profile: ProfileSettings = PROFILE, **who: Any) -> Situation:
    return Situation(
        key=SessionKey("t", "s"),
        identity=Identity(session="s", **({"user": "kai"} | who)),
        profile=profile,
        side=SideRequests(()),
        closed=False,
    )


def account(**more: Any) -> Account:
    return Account("s", **({"exchange": "ex", "status": "applied"} | more))


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
    assert names_for(situation(**who), account(**did)) == names


def test_they_are_off_by_default() -> None:
    assert names_for(situation(ProfileSettings()), account()) == ()


def test_a_use_knows_whose_it_is_and_the_clients_own_tools() -> None:
    own = [{"type": "function", "function": {"name": "f"}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": own}
    request = parse(json.dumps(body).encode())
    assert request is not None
    use = tool_use(request, situation(), account(), len, 1000.0)
    assert use is not None
    assert (use.names, use.rounds, json.loads(use.own or b"")) == (BOTH, 2, own)
    whose = use.whose
    assert (whose.key, whose.user, whose.exchange) == (("t", "s"), "kai", "ex")
    assert whose.began == 1000.0
    sent = json.loads(use.put_into(json.dumps(body).encode()))
    assert sent["tools"][:1] == own
    assert [tool["function"]["name"] for tool in sent["tools"][1:]] == list(BOTH)


def test_an_earlier_reason_stays_where_a_name_is_taken() -> None:
    tools = [{"type": "function", "function": {"name": SAVE}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools}
    request = parse(json.dumps(body).encode())
    assert request is not None
    did = account(reason="spooled")
    assert tool_use(request, situation(), did, len, 1000.0) is None
    assert did.reason == "spooled"
