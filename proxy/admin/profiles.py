"""A person's profile over the memory API: read, changed, put back to an earlier version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import must_match
from proxy.admin.context import unknown_profile
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.objects import Object, listed, reply, source_object
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError, memory_unavailable
from proxy.learning.forgetting import Busy
from proxy.learning.profile import Version
from proxy.learning.profile_patch import MOST_BYTES, PatchError, merging
from proxy.learning.profile_schema import Schema
from proxy.learning.profile_shelf import Check, Held, NoVersion, Patching
from proxy.memory.items import Shelf

JSON_PATCH = "application/json-patch+json"

LONGEST_PATCH = 4 * MOST_BYTES
"""Bytes; one may replace and test what is there."""


class Profiles:
    """``/users/{id}/profile``, ``…/profile/versions`` and ``…/profile/rollback``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access
        self._profiles, self._schemas = parts.learned.profiles, parts.learned.schemas

    async def get(self, request: Request) -> Response:
        """An empty document for people of whom nothing is known."""
        shelf = self._shelf(request)
        return reply(profile_object(shelf.user, await self._profiles.current(shelf)))

    async def patch(self, request: Request) -> Response:
        """A JSON Patch with its own content type, else a JSON Merge Patch; all of it or nothing.

        The schema is that of the profile ``?profile=`` of the configuration, by default [memory].
        """
        shelf, schema = self._shelf(request), self._schema(request)
        body = await asking.body_of(request, self._parts.settings.server)
        patching = self._patching(body, request.headers.get("content-type", ""))
        try:
            held = await self._profiles.edit(shelf, patching, schema, self._meant(request))
        except PatchError as error:
            raise invalid(f"The profile stays as it is: {error}", error.path) from None
        except Busy:
            raise memory_unavailable() from None
        return reply(profile_object(shelf.user, held))

    async def versions(self, request: Request) -> Response:
        """By number, ascending."""
        shelf, limit = self._shelf(request), asking.limit(request)
        page = await self._profiles.versions(shelf, asking.after_seq(request), limit)
        return reply(listed([version_object(version) for version in page.items], page.after))

    async def roll_back(self, request: Request) -> Response:
        """``{"version": n}``: that document once more, as a new version."""
        shelf = self._shelf(request)
        number = version_in(await asking.body_of(request, self._parts.settings.server), self._parts)
        try:
            held = await self._profiles.roll_back(shelf, number, self._meant(request))
        except NoVersion:
            raise version_not_found() from None
        except Busy:
            raise memory_unavailable() from None
        return reply(profile_object(shelf.user, held))

    def _meant(self, request: Request) -> Check:
        """Raises where the profile is not as the request says."""
        user = self._shelf(request).user
        return lambda held: must_match(request, profile_object(user, held))

    def _shelf(self, request: Request) -> Shelf:
        return Shelf(self._access.tenant(request), asking.user_in_path(request))

    def _schema(self, request: Request) -> Schema:
        settings = self._parts.settings.profile(request.query_params.get("profile"))
        if settings is None:
            raise unknown_profile()
        return self._schemas.of(settings.profile.schema)

    def _patching(self, body: bytes, content_type: str) -> Patching:
        if len(body) > LONGEST_PATCH:
            raise invalid(f"A patch must not be larger than {LONGEST_PATCH} bytes.")
        kind = content_type.partition(";")[0].strip().lower()
        return _patching(_decoded(body, self._parts.decode), kind)


def _patching(change: Any, kind: str) -> Patching:
    if kind == JSON_PATCH:
        if not isinstance(change, list):
            raise invalid("A JSON Patch must be a list of operations.")
        return lambda document: change
    if not isinstance(change, dict):
        raise invalid(f"The body must be an object, or with {JSON_PATCH} a list.")
    return lambda document: merging(document, change)


def _decoded(body: bytes, decode: Callable[[bytes], object]) -> object:
    try:
        return decode(body)
    except UNREADABLE:
        raise invalid("The body must be JSON that is not nested too deeply.") from None


def version_in(body: bytes, parts: AdminParts) -> int:
    """The field ``version`` of a body.  Raises ProxyError 400."""
    fields = fields_of(parts.fields, body)
    try:
        number = asking.whole(fields.get("version", b"null"))
    except UNREADABLE:
        number = 0
    if number < 1:
        raise invalid("version must be the number of a version.", "version")
    return number


def version_not_found() -> ProxyError:
    return ProxyError(404, "version_not_found", "There is no such version.", param="version")


def profile_object(user: str, held: Held) -> Object:
    return {
        "object": "profile",
        "user_id": user,
        "document": held.profile.document,
        "version": held.profile.version,
        "updated_at": held.updated_at,
    }


def version_object(version: Version) -> Object:
    return {
        "object": "profile.version",
        "version": version.version,
        "document": version.document,
        "patch": version.patch,
        "origin": version.origin,
        "sources": [source_object(source) for source in version.sources],
        "rolled_back_to": version.rolled_back_to,
        "created_at": version.created_at,
    }
