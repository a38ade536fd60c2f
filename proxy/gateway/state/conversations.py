"""Conversation objects of the Responses API: a session, its metadata, its messages as items.

Added items are recorded like an exchange of a chat, at the log's end.  Removed items are erased, as
by the memory API.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest, field_of
from proxy.errors import (
    ProxyError,
    conversation_not_found,
    invalid_value,
    item_not_found,
    memory_unavailable,
)
from proxy.formats.responses.api import Responses
from proxy.formats.responses.stored_objects import StoredItem, items_in, list_object
from proxy.gateway.context import RequestContext, intent_of, load_options_of, rules_of
from proxy.gateway.exchange import Services
from proxy.gateway.state.pages import SYSTEM_PREFIX, all_items, system_items, system_message
from proxy.memory.archive import Details, Revision, Session, SessionArchive
from proxy.memory.erasure import steady_now
from proxy.memory.model import Exchange, Injection, SessionKey
from proxy.memory.naming import conversation_name, reference_of
from proxy.memory.recording.commit import Count, ExchangeMeta, build_commit, pending_record

FORMAT = Responses()

MAX_ITEMS = 20
"""Items in one request."""

MAX_KEYS, MAX_KEY, MAX_VALUE = 16, 64, 512
"""Limits on metadata, as OpenAI has them: keys, and characters of a key and of a value."""

ATTEMPTS = 10
"""Attempts at a change that is overtaken by concurrent ones."""


class Removals(msgspec.Struct, frozen=True):
    """Functions that erase a session, and one message of it."""

    session: Callable[[SessionKey], Awaitable[object]]
    message: Callable[[SessionKey, str], Awaitable[object]]


def metadata_of(raw: bytes | None) -> bytes | None:
    """A request's metadata as JSON; None if it has none.  Raises ProxyError 400."""
    if raw in (None, b"null"):
        return None
    value = field_of({"metadata": raw}, "metadata")
    fits = isinstance(value, dict) and len(value) <= MAX_KEYS and all(map(_fits, value.items()))
    if not fits:
        sizes = f"{MAX_KEYS} texts of {MAX_VALUE} characters, by names of {MAX_KEY}"
        raise invalid_value(f"metadata must be an object of at most {sizes}.", "metadata")
    return jsontext.encode(value)


def _fits(pair: tuple[str, object]) -> bool:
    key, value = pair
    return len(key) <= MAX_KEY and isinstance(value, str) and len(value) <= MAX_VALUE


def _name(key: SessionKey) -> str:
    return conversation_name(reference_of(key.session))


def conversation_object(key: SessionKey, session: Session) -> bytes:
    fields = {
        "id": jsontext.encode(_name(key)),
        "object": b'"conversation"',
        "created_at": b"%d" % session.created_at,
        "metadata": session.details.metadata,
    }
    return jsontext.join_fields(fields)


class ConversationObjects:
    """The operations on conversations.  All methods raise ProxyError and StoreError."""

    def __init__(self, services: Services, removals: Removals) -> None:
        self._services, self._removals = services, removals
        self._store = services.state.store

    async def create(self, context: RequestContext, body: bytes) -> bytes:
        """Create a conversation, or add to the session if it exists."""
        fields = fields_in(body) if body.strip() else {}
        metadata, key = metadata_of(fields.get("metadata")), context.key
        request = await self._read(context, fields.get("items"))
        if not await self._store.restore(key, _empty(context, metadata or b"{}")) and metadata:
            await self._set_metadata(key, metadata)
        await self._services.state.store_reference(key, context.profile.ttl)
        if request is not None:
            await self._append(context, request)
        return conversation_object(key, await self.session(key))

    async def session(self, key: SessionKey) -> Session:
        session = await self._services.state.session(key)
        if session is None:
            raise conversation_not_found(_name(key))
        return session

    async def update(self, key: SessionKey, body: bytes) -> bytes:
        metadata = metadata_of(fields_in(body).get("metadata"))
        if metadata is None:
            raise invalid_value("metadata must be an object.", "metadata")
        await self._set_metadata(key, metadata)
        return conversation_object(key, await self.session(key))

    async def delete(self, key: SessionKey) -> bytes:
        """Erase the session with everything that it owns."""
        await self._removals.session(key)
        return deleted_object(_name(key), "conversation.deleted")

    async def add(self, context: RequestContext, body: bytes) -> bytes:
        await self.session(context.key)
        request = await self._read(context, fields_in(body).get("items"))
        if request is None:
            raise _bad_items()
        return list_object(await self._append(context, request), more=False)

    async def item(self, key: SessionKey, id: str) -> StoredItem:
        async for item in all_items(self._services, key):
            if item.id == id:
                return item
        await self.session(key)
        raise item_not_found(id)

    async def remove(self, key: SessionKey, id: str) -> bytes:
        """Erase the message of an item, and with tool calls also their results."""
        item = await self.item(key, id)
        if item.message.startswith(SYSTEM_PREFIX):
            await self._remove_system(key, id)
        else:
            await self._removals.message(key, item.message)
        return conversation_object(key, await self.session(key))

    async def _read(self, context: RequestContext, items: bytes | None) -> ChatRequest | None:
        """The items, parsed like the input of a request; None if there are none."""
        raws = _item_list(items)
        if not raws:
            return None
        body = jsontext.join_fields({"input": jsontext.join_items(raws)})
        read = partial(FORMAT.read, body, context.profile.max_inline_media_bytes)
        request = await self._services.threads.run(context.key.tenant, len(body), read)
        if not isinstance(request, ChatRequest) or request.state.references:
            raise invalid_value("items must be items that say something themselves.", "items")
        return request

    async def _append(self, context: RequestContext, request: ChatRequest) -> Sequence[StoredItem]:
        """Record the messages as an exchange without an answer; returns their items."""
        recorder, began = self._services.recorder, steady_now()
        count = self._services.counter(None)
        rules = rules_of(request, context, count.count_text)
        intent = replace(intent_of(request, context, began), history="delta")
        prepared = await recorder.prepare(
            context.key, load_options_of(context, rules), request.messages, intent, rules
        )
        planned, system = prepared.planned, request.system_record
        exchange = Exchange(
            id=f"im_{secrets.token_urlsafe(15)}",
            profile=context.identity.profile,
            started_at=began,
            created_at=steady_now(),
            memory=Injection(status="off", reason="import"),
        )
        meta = ExchangeMeta(
            exchange=exchange,
            user=context.identity.user or prepared.snapshot.owner,
            system=jsontext.join_items(system) if system else None,
            system_tokens=sum(map(count.count, system)),
            ttl=context.profile.ttl,
        )
        pending = pending_record(planned.plan, planned.prompt, planned.messages, prepared.snapshot)
        size = sum(len(message.raw) for message in request.messages)
        build = partial(build_commit, pending, (), meta, count.count)
        commit = await self._services.threads.run(context.key.tenant, size, build)
        if await recorder.record(context.key, commit) not in ("recorded", "spooled"):
            raise memory_unavailable()
        added = [x for draft in commit.drafts for x in items_in(draft.card.id, draft.body)]
        return [*system_items(context.key, commit.system), *added]

    async def _set_metadata(self, key: SessionKey, metadata: bytes) -> None:
        await self._change(key, lambda details: replace(details, metadata=metadata))

    async def _remove_system(self, key: SessionKey, id: str) -> None:
        count = self._services.counter(None).count
        await self._change(key, lambda details: _without_system(details, key, id, count))

    async def _change(self, key: SessionKey, changed: Callable[[Details], Details]) -> None:
        for _ in range(ATTEMPTS):
            details = (await self.session(key)).details
            if await self._store.revise(
                key, Revision(details=changed(details), expected_details=details)
            ):
                return
        raise memory_unavailable()


def _without_system(details: Details, key: SessionKey, id: str, count: Count) -> Details:
    """The details without the system message of the item ``id``."""
    removed = {item.message for item in system_items(key, details.system) if item.id == id}
    messages = jsontext.items(details.system) if details.system else []
    kept = [raw for n, raw in enumerate(messages) if system_message(key, n) not in removed]
    system = jsontext.join_items(kept) if kept else None
    return replace(details, system=system, system_tokens=sum(map(count, kept)))


def fields_in(body: bytes) -> dict[str, bytes]:
    """The fields of a request.  Raises ProxyError 400."""
    try:
        return jsontext.fields(body)
    except jsontext.UNREADABLE:
        raise invalid_value("The body must be a JSON object.", "body") from None


def deleted_object(id: str, kind: str) -> bytes:
    return jsontext.encode({"id": id, "object": kind, "deleted": True})


def _item_list(items: bytes | None) -> list[bytes]:
    """The JSON of each item.  Raises ProxyError 400 for no list, or more than ``MAX_ITEMS``."""
    try:
        raws = jsontext.items(items) if items and items != b"null" else []
    except jsontext.UNREADABLE:
        raise _bad_items() from None
    if len(raws) > MAX_ITEMS:
        raise _bad_items()
    return raws


def _bad_items() -> ProxyError:
    return invalid_value(f"items must be a list of 1 to {MAX_ITEMS} items.", "items")


def _empty(context: RequestContext, metadata: bytes) -> SessionArchive:
    """A session without messages."""
    now, identity = steady_now(), context.identity
    session = Session(
        id=context.key.session,
        user=identity.user,
        messages=0,
        tokens=0,
        window_start=0,
        created_at=now,
        last_active_at=now,
        details=Details(metadata=metadata, ttl=context.profile.ttl),
    )
    return SessionArchive(session, (), ())
