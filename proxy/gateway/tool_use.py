"""What of memory's tools a request offers the model.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest
from proxy.chat.tool_offer import SAVE, SEARCH, may_offer, name_taken, with_tools
from proxy.gateway.account import Account
from proxy.gateway.refusals import Kind
from proxy.gateway.situation import Situation
from proxy.gateway.tool_runs import ToolLog, Whose


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The functions ``names`` for at most ``rounds`` rounds.

    ``own`` is the JSON of the client's own tools.  ``kind`` is by what an upstream may refuse them.
    ``log`` is what comes of it.
    """

    names: tuple[str, ...]
    rounds: int
    own: bytes | None
    whose: Whose
    log: ToolLog = field(default_factory=ToolLog)
    kind: Kind = Kind()

    def put_into(self, body: bytes) -> bytes:
        """A request's body with the functions in it."""
        return jsontext.join_fields(with_tools(jsontext.fields(body), self.names))


def tool_use(
    request: ChatRequest,
    situation: Situation,
    account: Account,
    count: Callable[[str], int],
    began: float,
) -> ToolUse | None:
    """None for a request that offers nothing; if that is for its client's tools, it says so."""
    names, user = names_for(situation, account), situation.identity.user
    if not names or user is None or not may_offer(request):
        return None
    if name_taken(request):
        account.reason = account.reason or "tool_name_taken"
        return None
    whose = Whose(situation.key, user, account.exchange, situation.profile, count, began)
    own = request.fields.get("tools")
    kind = Kind(request.model, request.fields.get("reasoning_effort", b""), own is not None)
    return ToolUse(names, situation.profile.tools.max_rounds, own, whose, kind=kind)


def names_for(situation: Situation, account: Account) -> tuple[str, ...]:
    """What the model may do: save where the exchange is recorded, search where memory is read.

    Neither for a person who is not known, nor where memory has failed already, nor for a request
    beside the conversation.
    """
    identity = situation.identity
    recorded = account.exchange is not None
    if not situation.profile.tools.enabled or account.status == "degraded":
        return ()
    if identity.user is None or (identity.mode != "read" and not recorded):
        return ()
    if account.reason == "side_request":
        return ()
    save = (SAVE,) if recorded else ()
    search = (SEARCH,) if identity.mode != "write" else ()
    return (*save, *search)
