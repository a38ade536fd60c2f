"""Upstreams beside [upstream], as work in the background asks them."""

from __future__ import annotations

from proxy.background.completion import Assignment
from proxy.background.credentials import Credentials
from proxy.errors import RawHeaders
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination


class Further:
    """A tenant's own key is known for each upstream that it is sent to, and goes to no other."""

    def __init__(self, upstreams: Upstreams, anonymous: str) -> None:
        self._upstreams = upstreams
        self.credentials = {
            each.name: Credentials(anonymous) for each in upstreams.listed if each.client_keys
        }

    def destination(self, assignment: Assignment) -> Destination | None:
        """Where it is asked: where it says, else where a chat with its model goes.

        None is not here: a URL and a key that the settings have are for each other.
        """
        if assignment.upstream:
            return self._upstreams.named(assignment.upstream)
        if assignment.url or assignment.key:
            return None
        return self._upstreams.of_model(assignment.model or assignment.default_model or "")

    def may_be_asked(self, assignment: Assignment) -> bool:
        """Could it be asked here, as its session's model is not known yet?"""
        decided = assignment.place or assignment.key or assignment.model
        if decided or assignment.default_model:
            return False
        known = (self.credential(each, assignment.tenant) for each in self._upstreams.listed)
        return any(each is not None for each in known)

    def credential(self, destination: Destination, tenant: str) -> RawHeaders | None:
        """What a tenant is known by there, beside what is sent in any case; None where that is not
        known."""
        known = self.credentials.get(destination.name)
        return known.of(tenant) if known is not None else []
