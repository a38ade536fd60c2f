"""Finds the session of a request without session header: by an id in its body, in the fields that
the settings list, or a new one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from functools import partial

from proxy.chat import jsontext
from proxy.chat.request import State
from proxy.errors import conversation_not_found, memory_unavailable, response_not_found
from proxy.formats.responses.api import Responses
from proxy.formats.responses.names import parse_response_id
from proxy.formats.responses.reading import CONVERSATION, PREVIOUS, state_of
from proxy.gateway.exchange import Services
from proxy.gateway.request import ProxyRequest
from proxy.gateway.state.emulation import check_state, is_emulating
from proxy.memory.ids import is_id
from proxy.memory.naming import conversation_name, reference_in
from proxy.memory.store import StoreError
from proxy.settings import Settings


def new_session() -> str:
    """A session name that cannot be guessed."""
    return conversation_name(secrets.token_hex(16))


class SessionResolver:
    """Finds a request's session by the ids in its body, as the settings allow."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._settings, self._services = settings, services
        self._id_fields = settings.server.body_session_ids

    def applies(self, call: ProxyRequest) -> bool:
        """Whether the body of a call without a session may name one."""
        return call.may_name_session and (bool(self._id_fields) or self._emulates(call))

    async def session_of(self, call: ProxyRequest, body: bytes) -> str | None:
        """The session; None for a request without memory.  Raises ProxyError 404 for an unknown
        response or conversation, 400 for unsupported state."""
        fields = await self._services.threads.run(
            call.caller.tenant, len(body), partial(_fields, body)
        )
        if fields is None:
            return None
        if not self._emulates(call):
            return body_session(fields, self._id_fields)
        state = state_of(fields)
        check_state(state)
        reference = _reference(state)
        if reference is not None:
            return await self._session_with(call.caller.tenant, reference)
        session = body_session(fields, self._id_fields)
        if session is None:
            _reject_unknown(state)
        return session or (new_session() if state.stores and _records(call) else None)

    def _emulates(self, call: ProxyRequest) -> bool:
        is_responses = isinstance(call.route.format, Responses)
        return is_responses and is_emulating(self._settings, call.identity.profile)

    async def _session_with(self, tenant: str, reference: str) -> str:
        try:
            return (await self._services.state.session_of(tenant, reference)).session
        except StoreError as failure:
            raise memory_unavailable() from failure


def _records(call: ProxyRequest) -> bool:
    format = call.route.format
    return format is not None and format.records and call.identity.records


def _fields(body: bytes) -> dict[str, bytes] | None:
    try:
        return jsontext.fields(body)
    except jsontext.UNREADABLE:
        return None


def _reference(state: State) -> str | None:
    answer = parse_response_id(state.previous)
    return answer.reference if answer else reference_in(state.conversation)


def _reject_unknown(state: State) -> None:
    """Raise ProxyError 404 for a response or conversation that the proxy has not named."""
    if state.previous is not None:
        raise response_not_found(state.previous, PREVIOUS)
    if state.conversation is not None:
        raise conversation_not_found(state.conversation, CONVERSATION)


USER_ID = "metadata.user_id"

_CLAUDE_CODE = re.compile(r"user_.+_session_(?P<session>.+)", re.DOTALL)
"""``metadata.user_id`` of Claude Code, unless it is JSON with a ``session_id``."""


def body_session(fields: dict[str, bytes], names: Sequence[str]) -> str | None:
    """The first valid id in these fields of a request; None if there is none.

    A name with a dot means a field of an object.
    """
    for name in names:
        value = _value(fields, name)
        session = _session_in_user_id(value) if name == USER_ID else _session_in(value)
        if isinstance(session, str) and is_id(session):
            return session
    return None


def _value(fields: dict[str, bytes], name: str) -> object:
    outer, _, inner = name.partition(".")
    try:
        value = jsontext.decode(fields.get(outer, b"null"))
    except jsontext.UNREADABLE:
        return None
    if not inner:
        return value
    return value.get(inner) if isinstance(value, dict) else None


def _session_in(value: object) -> object:
    return value.get("id") if isinstance(value, dict) else value


def _session_in_user_id(value: object) -> object:
    """The session in ``metadata.user_id``; None for a plain user id."""
    if not isinstance(value, str):
        return None
    if value.lstrip().startswith("{"):
        try:
            fields = jsontext.decode(value.encode("utf-8", "surrogatepass"))
        except jsontext.UNREADABLE:
            return None
        return fields.get("session_id") if isinstance(fields, dict) else None
    match = _CLAUDE_CODE.fullmatch(value)
    return match["session"] if match else None
