"""The values of an exchange: what is told of each step, whatever came before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.models.tokens import Tokenizers
from proxy.formats.chat_completions import ChatCompletions
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import ChatExchange, LoadedExchange
from proxy.gateway.identity import Identity
from proxy.gateway.outgoing import OutgoingRequest, with_tools, without_tools
from proxy.gateway.prompt.prompt import AssembledPrompt
from proxy.gateway.report import Reason
from proxy.memory.model import SessionKey, Snapshot
from proxy.memory.planner import PlannedRequest
from proxy.memory.prompt.compose import PromptRules, compose
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import reconcile
from proxy.memory.recording.recorder import PreparedRequest
from proxy.settings import ProfileSettings
from tests.support.talk.parsing import parse
from tests.support.upstream.tooling import SAVE

PROFILE = ProfileSettings.model_validate({"tools": {"enabled": True}})


def begun(*, side: bool = False, **fields: Any) -> ChatExchange:
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], **fields}).encode()
    request = parse(body)
    assert request is not None
    identity = Identity(session="s", user="kai")
    return ChatExchange(
        id="ex_1",
        began=1.0,
        format=ChatCompletions(),
        request=request,
        body=body,
        context=RequestContext(SessionKey("t", "s"), identity, ProfileRules.of(PROFILE), False),
        counter=Tokenizers().counter_for(None),
        intent=Intent(),
        rules=PromptRules(window=Window()),
        is_side_request=side,
    )


def outgoing(
    exchange: ChatExchange, *, spools: bool = False, stale: bool = False
) -> OutgoingRequest:
    said, none = exchange.request.messages, Snapshot()
    plan = reconcile(none, said, exchange.intent, lambda message, card: "")
    prompt = compose(none, plan, said, exchange.rules)
    prepared = PreparedRequest(PlannedRequest(none, plan, prompt, {}, ()), spools)
    assembled = AssembledPrompt.of(LoadedExchange(exchange, prepared, None, stale), prompt)
    return OutgoingRequest(exchange, assembled, assembled.recorded, assembled.reason, 0.0)


@pytest.mark.parametrize(
    ("side", "stale", "spools", "reason", "recorded"),
    [
        pytest.param(False, False, False, None, True, id="nothing"),
        pytest.param(False, False, True, "spooled", True, id="earlier-turns-wait"),
        pytest.param(True, False, True, "side_request", False, id="a-title"),
        pytest.param(True, True, True, "stale_retry", False, id="a-retry-that-is-too-late"),
    ],
)
def test_the_first_reason_is_told(
    side: bool, stale: bool, spools: bool, reason: Reason | None, recorded: bool
) -> None:
    report = outgoing(begun(side=side), stale=stale, spools=spools).report
    assert (report.status, report.reason) == ("empty", reason)
    assert report.exchange == ("ex_1" if recorded else None)


TAKEN = [{"type": "function", "function": {"name": SAVE}}]


@pytest.mark.parametrize(
    ("spools", "reason"),
    [pytest.param(True, "spooled", id="earlier"), pytest.param(False, "tool_name_taken", id="own")],
)
def test_an_earlier_reason_stays_where_a_name_is_taken(spools: bool, reason: str) -> None:
    offered = with_tools(outgoing(begun(tools=TAKEN), spools=spools))
    assert (offered.tools, offered.report.reason) == (None, reason)


def test_tools_that_are_refused_are_told_above_all() -> None:
    offered = with_tools(outgoing(begun(), spools=True))
    assert offered.tools is not None
    without = without_tools(offered, offered.tools.refusal)
    assert (without.tools, without.report.reason) == (None, "tools_refused")
    assert without.body() == without.exchange.body
