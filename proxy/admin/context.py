"""The preview of a prompt: what a request would become, without sending it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.imports import fields_of
from proxy.admin.objects import context_object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import the_session
from proxy.errors import ProxyError, profile_not_allowed


class Context:
    """``/sessions/{id}/context``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access

    async def preview(self, request: Request) -> Response:
        """The messages exactly as they would be sent.  Changes nothing."""
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        profile = self._profile(request, body)
        session = await the_session(self._parts.store, key)
        preview = await self._parts.preview(key, body, profile, session.user)
        if preview is None:
            raise invalid("messages must be a list of message objects.", "messages")
        return reply(context_object(key.session, preview))

    def _profile(self, request: Request, body: bytes) -> str:
        profile = asking.text_field(fields_of(self._parts.fields, body), "profile") or ""
        if self._parts.settings.profile(profile or None) is None:
            raise unknown_profile()
        client = self._access.client(request)
        if profile and client and not {"*", profile} & set(client.profiles):
            raise profile_not_allowed()
        return profile


def unknown_profile() -> ProxyError:
    message = "There is no such profile. Use one of the proxy's [profiles.NAME], or none."
    return ProxyError(400, "unknown_profile", message, param="profile")
