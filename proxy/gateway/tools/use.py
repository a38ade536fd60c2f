"""Decides which of memory's tools a request offers the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest
from proxy.chat.tools.offer import SAVE, SEARCH, is_name_taken, may_offer, with_tools
from proxy.gateway.asking.refusals import Refusal
from proxy.gateway.context import RequestContext
from proxy.gateway.report import MemoryReport
from proxy.gateway.tools.toolbox import ToolContext, ToolLog

NameTaken = Literal["tool_name_taken"]
"""The client has a tool of the same name."""


class ToolUse(msgspec.Struct, frozen=True):
    """Offers the functions ``names`` for at most ``rounds`` rounds.

    ``client_tools`` is the JSON of the client's own tools.  ``refusal``: how a refusal is
    remembered.  ``log`` collects the calls.
    """

    names: tuple[str, ...]
    rounds: int
    client_tools: bytes | None
    context: ToolContext
    log: ToolLog = msgspec.field(default_factory=ToolLog)
    refusal: Refusal = Refusal()

    def put_into(self, body: bytes) -> bytes:
        """The request's body with the functions added to its tools."""
        return jsontext.join_fields(with_tools(jsontext.fields(body), self.names))


def tool_use(
    request: ChatRequest,
    context: RequestContext,
    report: MemoryReport,
    count: Callable[[str], int],
    began: float,
) -> ToolUse | NameTaken | None:
    """The tools that a request offers; None if it offers none."""
    names, user = offered_tools(context, report), context.identity.user
    if not names or user is None or not may_offer(request):
        return None
    if is_name_taken(request):
        return "tool_name_taken"
    tool_context = ToolContext(context.key, user, report.exchange, context.profile, count, began)
    client_tools = request.fields.get("tools")
    effort = request.fields.get("reasoning_effort", b"")
    refusal = Refusal(request.model, effort, has_client_tools=client_tools is not None)
    rounds = context.profile.tools.max_rounds
    return ToolUse(names, rounds, client_tools, tool_context, refusal=refusal)


def offered_tools(context: RequestContext, report: MemoryReport) -> tuple[str, ...]:
    """Save if the exchange is recorded, search if memory may be read.

    Neither without a user, nor if memory has failed, nor for a side request.
    """
    identity = context.identity
    recorded = report.exchange is not None
    if not context.profile.tools.enabled or report.status == "degraded":
        return ()
    if identity.user is None or (identity.mode != "read" and not recorded):
        return ()
    if report.reason == "side_request":
        return ()
    save = (SAVE,) if recorded else ()
    search = (SEARCH,) if identity.mode != "write" else ()
    return (*save, *search)
