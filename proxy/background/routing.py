"""Routes background work to [[upstreams]]."""

from __future__ import annotations

from proxy.background.completion import Assignment
from proxy.background.credentials import Credentials
from proxy.errors import RawHeaders
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination


class NamedUpstreams:
    """The upstreams beside [upstream].

    A tenant's own key is remembered per upstream and never sent to another one.
    """

    def __init__(self, upstreams: Upstreams, anonymous: str) -> None:
        self._upstreams = upstreams
        self.credentials = {
            each.name: Credentials(anonymous) for each in upstreams.listed if each.client_keys
        }

    def destination(self, assignment: Assignment) -> Destination | None:
        """The upstream that the assignment names, else the one for its model; None for [upstream].

        An assignment with a URL or key of its own never goes to one of these.
        """
        if assignment.upstream:
            return self._upstreams.by_name(assignment.upstream)
        if assignment.url or assignment.key:
            return None
        return self._upstreams.of_model(assignment.model or assignment.default_model or "")

    def may_route(self, assignment: Assignment) -> bool:
        """Whether an assignment without a model could go to one of these: its session's model is
        not known yet."""
        decided = assignment.endpoint or assignment.key or assignment.model
        if decided or assignment.default_model:
            return False
        known = (self.credential(each, assignment.tenant) for each in self._upstreams.listed)
        return any(each is not None for each in known)

    def credential(self, destination: Destination, tenant: str) -> RawHeaders | None:
        """The tenant's headers for an upstream; None if they are needed and not known."""
        known = self.credentials.get(destination.name)
        return known.of(tenant) if known is not None else []
