"""``/v1/responses/{id}`` and ``/v1/conversations``, if the proxy keeps what upstreams do not.

An id leads to its session within the tenant; it must be the session of the headers, if they have
one.  An unknown id and one of another user get the same answer after the same store calls, so that
callers cannot find out which exist.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from proxy.errors import (
    ProxyError,
    conversation_not_found,
    invalid_value,
    memory_busy,
    memory_unavailable,
    method_not_allowed,
    not_found,
    not_in_background,
    response_not_found,
)
from proxy.formats.native import frame_of
from proxy.formats.responses.items import API
from proxy.formats.responses.names import parse_response_id
from proxy.formats.responses.stored_objects import response_object
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import Services, check_owner
from proxy.gateway.request import ProxyRequest
from proxy.gateway.state.conversations import (
    ATTEMPTS,
    ConversationObjects,
    Removals,
    conversation_object,
    deleted_object,
)
from proxy.gateway.state.emulation import is_emulating
from proxy.gateway.state.log import StoredAnswer
from proxy.gateway.state.naming import new_session
from proxy.gateway.state.pages import PageRequest, all_items, items_of, query_fields, render_page
from proxy.learning.collection import Busy
from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey
from proxy.memory.naming import reference_in, reference_of
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import StoreError
from proxy.settings import Settings
from proxy.wire.limits import READ_RESERVE

_NOT_STATE = re.compile(r"responses(?:/(?:compact|input_tokens))?")
"""Paths that begin like those of kept state and are not."""


class StateCall(NamedTuple):
    """A request, and the ids of the object and of the item in its path, "" if it has none."""

    request: ProxyRequest
    id: str
    item: str


Answer = Callable[[StateCall], Awaitable[bytes]]


def is_state_path(name: str) -> bool:
    """Whether a path is one of kept state, including unknown ones below it."""
    first = name.partition("/")[0]
    return first in ("responses", "conversations") and _NOT_STATE.fullmatch(name) is None


class StateEndpoints:
    """The endpoints, by path and method."""

    def __init__(self, settings: Settings, services: Services, removals: Removals) -> None:
        self._settings, self._services = settings, services
        self._conversations = ConversationObjects(services, removals)
        self._log, self._store = services.state, services.state.store
        self._answers: Mapping[str, Mapping[str, Answer]] = {
            "responses/id": {"GET": self._response, "DELETE": self._delete_response},
            "responses/id/input_items": {"GET": self._input_items},
            "responses/id/cancel": {"POST": self._cancel},
            "conversations": {"POST": self._create},
            "conversations/id": {
                "GET": self._conversation,
                "POST": self._update,
                "DELETE": self._delete,
            },
            "conversations/id/items": {"GET": self._items, "POST": self._add},
            "conversations/id/items/id": {"GET": self._item, "DELETE": self._remove},
        }

    def serves(self, call: ProxyRequest) -> bool:
        if not (call.may_use_state and is_state_path(call.route.name)):
            return False
        return is_emulating(self._settings, call.identity.profile)

    async def serve(self, call: ProxyRequest) -> None:
        """Answer a call.  Raises ProxyError and ClientGone before the answer."""
        if call.method == "GET":
            await call.reservation.reserve_answer(READ_RESERVE)
        try:
            body = await self._answer(call)
        except (StoreError, SpoolError) as failure:
            raise memory_unavailable() from failure
        except Busy as busy:
            raise memory_busy() from busy
        call.reservation.set_answer(len(body))
        await call.answer(body)

    async def _answer(self, call: ProxyRequest) -> bytes:
        """Raises ProxyError 404 and 405 too."""
        api, *ids = call.route.name.split("/")
        endpoint = "/".join([api, *("id" if n % 2 == 0 else part for n, part in enumerate(ids))])
        methods = self._answers.get(endpoint)
        if methods is None or "" in ids:
            raise not_found()
        if call.method not in methods:
            raise method_not_allowed(", ".join(methods))
        return await methods[call.method](StateCall(call, *[*ids[::2], "", ""][:2]))

    # Responses

    async def _response(self, call: StateCall) -> bytes:
        _, answer = await self._stored_answer(call)
        if query_fields(call.request.query).get("stream", ["false"])[-1].lower() == "true":
            text = "Only what is made in the background can be streamed again. Leave stream out."
            raise not_in_background(text, "stream")
        frame = frame_of(answer.raw, API) or {}
        return response_object(frame, answer.raw, answer.exchange.usage, call.id)

    async def _input_items(self, call: StateCall) -> bytes:
        page = PageRequest.read(call.request.query)
        key, answer = await self._stored_answer(call)
        items = items_of(self._services, key, answer.inputs, descending=page.descending)
        return await render_page(items, page)

    async def _cancel(self, call: StateCall) -> bytes:
        await self._stored_answer(call)
        raise not_in_background("Only what is made in the background can be cancelled.")

    async def _delete_response(self, call: StateCall) -> bytes:
        """Remove the response's id; its messages stay in the session's log."""
        for _ in range(ATTEMPTS):
            key, answer = await self._stored_answer(call)
            if await self._store.revise(key, Revision(edited=(answer.without_id,))):
                return deleted_object(call.id, "response")
        raise memory_unavailable()

    async def _stored_answer(self, call: StateCall) -> tuple[SessionKey, StoredAnswer]:
        """The response of the path, with its session.  Raises ProxyError 404, StoreError."""
        name, missing = parse_response_id(call.id), response_not_found(call.id)
        key = await self._session_key(call.request, name.reference if name else None, missing)
        answer = await self._log.answer(key, name) if name else None
        if answer is None:
            raise missing
        await self._check_owner(call.request, key)
        return key, answer

    # Conversations

    async def _create(self, call: StateCall) -> bytes:
        request = call.request
        session = request.identity.session
        if session is None and not request.may_use_ids:
            raise invalid_value("Ids are signed here: send X-Session-Id.", "X-Session-Id")
        key = SessionKey(request.caller.tenant, session or new_session())
        await self._check_owner(request, key)
        context, body = self._context(request, key), await self._body(request)
        return await self._conversations.create(context, body)

    async def _conversation(self, call: StateCall) -> bytes:
        key = await self._conversation_key(call)
        return conversation_object(key, await self._conversations.session(key))

    async def _update(self, call: StateCall) -> bytes:
        key = await self._conversation_key(call)
        return await self._conversations.update(key, await self._body(call.request))

    async def _delete(self, call: StateCall) -> bytes:
        return await self._conversations.delete(await self._conversation_key(call))

    async def _items(self, call: StateCall) -> bytes:
        page = PageRequest.read(call.request.query)
        key = await self._conversation_key(call)
        return await render_page(all_items(self._services, key, descending=page.descending), page)

    async def _add(self, call: StateCall) -> bytes:
        context = self._context(call.request, await self._conversation_key(call))
        return await self._conversations.add(context, await self._body(call.request))

    async def _item(self, call: StateCall) -> bytes:
        key = await self._conversation_key(call)
        return (await self._conversations.item(key, call.item)).raw

    async def _remove(self, call: StateCall) -> bytes:
        key = await self._conversation_key(call)
        return await self._conversations.remove(key, call.item)

    async def _conversation_key(self, call: StateCall) -> SessionKey:
        """The session of the conversation in the path.  Raises ProxyError 404, StoreError."""
        missing = conversation_not_found(call.id)
        key = await self._session_key(call.request, reference_in(call.id), missing)
        if await self._log.session(key) is None:
            raise missing
        await self._check_owner(call.request, key)
        return key

    # Both

    async def _session_key(
        self, call: ProxyRequest, reference: str | None, missing: ProxyError
    ) -> SessionKey:
        """The session of a reference.  Raises ``missing`` if it is not the caller's, StoreError."""
        session, tenant = call.identity.session, call.caller.tenant
        if reference is None or not (session or call.may_use_ids):
            raise missing
        if session is None:
            return await self._log.session_of(tenant, reference)
        if reference_of(session) != reference:
            raise missing
        return SessionKey(tenant, session)

    async def _check_owner(self, call: ProxyRequest, key: SessionKey) -> None:
        session = await self._log.session(key)
        check_owner(session.user if session else None, call.identity.user)

    async def _body(self, call: ProxyRequest) -> bytes:
        """The whole body, decompressed.  Raises ProxyError, ClientGone."""
        server = self._settings.server
        body = await call.body(server)
        plain = await call.decoded_body(body, server, self._services.threads)
        if plain is None:
            raise invalid_value("The body is packed in a way that is not known.", "body")
        return plain

    def _context(self, call: ProxyRequest, key: SessionKey) -> RequestContext:
        profile = self._settings.profile(call.identity.profile)
        assert profile is not None  # else it would not be served here
        return RequestContext(
            key=key,
            identity=call.identity,
            profile_rules=ProfileRules.of(profile),
            fails_closed=True,
        )
