"""One request to the relay, as it goes through the gateway."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import msgspec

from proxy.errors import RawHeaders
from proxy.gateway.identity import Identity
from proxy.gateway.report import MemoryReport
from proxy.gateway.routes import Route
from proxy.memory.model import SessionKey
from proxy.tenancy import Caller
from proxy.upstreams.destination import Destination
from proxy.wire.body import Receive
from proxy.wire.relay import Delivery

Scope = MutableMapping[str, Any]


class ProxyRequest(msgspec.Struct):
    """What came in (``method`` to ``receive``) and who it is from, once that is known."""

    method: str
    route: Route
    query: bytes
    headers: RawHeaders
    receive: Receive
    delivery: Delivery
    caller: Caller
    identity: Identity
    report: MemoryReport | None = None
    """What memory did, as far as it is known; None without a session."""
    fetches: bool = False
    """May the answer be that of an exchange which is recorded without one?"""
    may_be_named: bool = False
    """May an id in its body name its session?"""
    with_state: bool = False
    """May what the proxy keeps for upstreams be asked for?"""
    by_id: bool = False
    """By an id alone, with no session?"""
    model: str | None = None
    destination: Destination | None = None
    """Which of several upstreams it goes to; None is [upstream]."""
    upstream_seconds: float = 0.0
    """How long the heads of the upstream's answers took."""

    @property
    def key(self) -> SessionKey:
        """Of a request that has a session."""
        assert self.identity.session is not None
        return SessionKey(self.caller.tenant, self.identity.session)

    @property
    def target(self) -> bytes:
        """Path and query for the upstream."""
        return self.route.target + b"?" + self.query if self.query else self.route.target

    @property
    def upstream(self) -> str:
        """The name of that upstream, "" for [upstream]."""
        return self.destination.name if self.destination else ""

    @property
    def remembers(self) -> bool:
        """Is this a chat completion with memory?"""
        return self.identity.remembers and self.method == "POST" and self.route.chat
