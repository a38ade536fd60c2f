"""How an application answers, over the memory API: its instructions, and what a model proposes."""

from __future__ import annotations

import re
import time

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import must_match
from proxy.admin.imports import fields_of
from proxy.admin.objects import Object, listed, reply, source_object
from proxy.admin.parts import AdminParts
from proxy.admin.profiles import version_in, version_not_found
from proxy.errors import ProxyError, memory_unavailable
from proxy.learning.forgetting import Busy
from proxy.learning.instructions import LONGEST_TEXT, Proposal, Revision
from proxy.learning.instructions_shelf import Check, Held, NotThere, Outdated
from proxy.memory.items import Shelf
from proxy.memory.model import SessionKey
from proxy.memory.work import Due

_APPLICATION = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ApplicationInstructions:
    """``/instructions/{application}`` and what is below it."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access
        self._instructions, self._pending = parts.learned.instructions, parts.learned.pending

    async def get(self, request: Request) -> Response:
        """An empty text where there is none."""
        shelf, name = self._place(request)
        return reply(instructions_object(name, await self._instructions.current(shelf, name)))

    async def put(self, request: Request) -> Response:
        """``{"text": …}`` is the new version."""
        shelf, name = self._place(request)
        body = await asking.body_of(request, self._parts.settings.server)
        text = asking.text_field(fields_of(self._parts.fields, body), "text")
        if text is None or len(text) > LONGEST_TEXT:
            raise invalid(f"text must be a text of at most {LONGEST_TEXT} characters.", "text")
        try:
            meant = self._meant(request, name)
            held = await self._instructions.write(shelf, name, text.strip(), meant)
        except Busy:
            raise memory_unavailable() from None
        return reply(instructions_object(name, held))

    async def versions(self, request: Request) -> Response:
        """By number, ascending."""
        shelf, name = self._place(request)
        after, limit = asking.after_seq(request), asking.limit(request)
        page = await self._instructions.versions(shelf, name, after, limit)
        return reply(listed([revision_object(revision) for revision in page.items], page.after))

    async def roll_back(self, request: Request) -> Response:
        """``{"version": n}``: that text once more, as a new version."""
        shelf, name = self._place(request)
        number = version_in(await asking.body_of(request, self._parts.settings.server), self._parts)
        try:
            meant = self._meant(request, name)
            held = await self._instructions.roll_back(shelf, name, number, meant)
        except NotThere:
            raise version_not_found() from None
        except Busy:
            raise memory_unavailable() from None
        return reply(instructions_object(name, held))

    async def proposals(self, request: Request) -> Response:
        """The oldest first."""
        shelf, name = self._place(request)
        after, limit = request.query_params.get("after"), asking.limit(request)
        page = await self._instructions.proposals(shelf, name, after, limit)
        return reply(listed([proposal_object(name, each) for each in page.items], page.after))

    async def approve(self, request: Request) -> Response:
        return await self._decided(request, approve=True)

    async def reject(self, request: Request) -> Response:
        return await self._decided(request, approve=False)

    async def reflect(self, request: Request) -> Response:
        """Make a proposal of the feedback there is, soon; ``feedback``: is there any?"""
        shelf, name = self._place(request)
        profile = self._profile(name)
        if profile is None:
            raise no_such_application()
        try:
            newest = await self._pending.ask(shelf, name)
        except Busy:
            raise memory_unavailable() from None
        if newest is not None:
            key = SessionKey(shelf.tenant, newest.session)
            due = Due(kind="learning", profile=profile, at=time.time())
            await self._parts.store.enqueue(key, due)
        told = {"object": "instructions.reflection", "application": name}
        return reply({**told, "feedback": newest is not None}, 202)

    async def _decided(self, request: Request, *, approve: bool) -> Response:
        shelf, name = self._place(request)
        id = asking.decoded(request.path_params["proposal"]).decode("utf-8", "replace")
        try:
            decided = await self._instructions.decide(shelf, name, id, approve)
        except NotThere:
            raise proposal_not_found() from None
        except Outdated:
            raise outdated() from None
        except Busy:
            raise memory_unavailable() from None
        return reply(proposal_object(name, decided))

    def _meant(self, request: Request, name: str) -> Check:
        """Raises where the instructions are not as the request says."""
        return lambda held: must_match(request, instructions_object(name, held))

    def _place(self, request: Request) -> tuple[Shelf, str]:
        """The tenant's own shelf, and the application in the path."""
        shelf = Shelf(self._access.tenant(request))
        name = asking.decoded(request.path_params["application"]).decode("utf-8", "replace")
        if not _APPLICATION.fullmatch(name):
            raise invalid("An application has 1 to 64 characters: A-Z a-z 0-9 _ . -", "application")
        return shelf, name

    def _profile(self, application: str) -> str | None:
        """The profile that has this application's instructions made, "" for [memory]."""
        settings = self._parts.settings
        profiles = [("", settings.memory), *settings.profiles.items()]
        return next(
            (
                name
                for name, profile in profiles
                if profile.instructions.enabled and profile.instructions.name == application
            ),
            None,
        )


def no_such_application() -> ProxyError:
    message = "No profile with [memory.instructions] enabled has this application."
    return ProxyError(404, "application_not_found", message, param="application")


def proposal_not_found() -> ProxyError:
    return ProxyError(404, "proposal_not_found", "There is no such proposal.")


def outdated() -> ProxyError:
    message = (
        "The proposal was decided on before, or the instructions have changed since it was made."
    )
    return ProxyError(409, "proposal_outdated", message)


def instructions_object(application: str, held: Held) -> Object:
    return {
        "object": "instructions",
        "application": application,
        "text": held.instructions.text,
        "version": held.instructions.version,
        "updated_at": held.updated_at,
    }


def revision_object(revision: Revision) -> Object:
    return {
        "object": "instructions.version",
        "version": revision.version,
        "text": revision.text,
        "origin": revision.origin,
        "proposal_id": revision.proposal,
        "rolled_back_to": revision.rolled_back_to,
        "created_at": revision.created_at,
    }


def proposal_object(application: str, proposal: Proposal) -> Object:
    return {
        "object": "instructions.proposal",
        "id": proposal.id,
        "application": application,
        "text": proposal.text,
        "why": proposal.why,
        "state": proposal.state,
        "doubts": proposal.doubts,
        "base_version": proposal.base,
        "feedback": proposal.feedback,
        "sources": [source_object(given.source) for given in proposal.sources],
        "created_at": proposal.created_at,
        "decided_at": proposal.decided_at,
    }
