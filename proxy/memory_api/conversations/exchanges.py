"""Exchanges and previews over the memory API: what memory did for one, what it would do."""

from __future__ import annotations

from proxy.memory_api.api import Api
from proxy.memory_api.call import CallingClient, RawBody
from proxy.memory_api.conversations.message_edit import TAG
from proxy.memory_api.conversations.sessions import BY_PATH, SESSION, the_session
from proxy.memory_api.conversations.sessions import TAG as SESSIONS
from proxy.memory_api.errors import exchange_not_found, profile_not_allowed, unknown_profile
from proxy.memory_api.fields import invalid
from proxy.memory_api.objects import context_object, exchange_object
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import AfterSeq, ExchangeAt, Limit, SessionAt
from proxy.memory_api.shapes.messages import Context, ContextRequest, Exchange, ExchangeList

ALL = f"{SESSION}/exchanges"
FIRST = {**BY_PATH, "exchange": "$response.body#/data/0/id"}


@operation("GET", ALL, TAG, links=(Link("getExchange", FIRST),))
async def list_exchanges(api: Api, at: SessionAt, limit: Limit, after: AfterSeq) -> ExchangeList:
    """List exchanges.

    The newest first.
    """
    # Only those that have messages: none comes twice, and new ones before the first.
    page = await api.store.exchanges(at, after or None, limit)
    if not page.items:
        await the_session(api.store, at)
    data = [exchange_object(at.session, each.exchange, each.messages) for each in page.items]
    return ExchangeList.part(data, page.after)


@operation("GET", f"{ALL}/{{exchange}}", TAG)
async def get_exchange(api: Api, at: SessionAt, wanted: ExchangeAt) -> Exchange:
    """See what memory did for an exchange.

    Which messages, facts and passages stood in the prompt, by id; never their text.
    """
    found = await api.store.exchange(at, wanted)
    if found is None:
        await the_session(api.store, at)
        raise exchange_not_found()
    return exchange_object(at.session, *found)


@operation(
    "POST",
    f"{SESSION}/context",
    SESSIONS,
    examples={"question": {"messages": [{"role": "user", "content": "And on Sunday?"}]}},
    errors=(unknown_profile, profile_not_allowed),
)
async def preview_context(
    api: Api, at: SessionAt, asked: ContextRequest, body: RawBody, client: CallingClient
) -> Context:
    """See what a request would become.

    Exactly the messages that would be sent, and why. Changes nothing.
    """
    profile = asked.profile or ""
    if api.settings.profile(profile) is None:
        raise unknown_profile()
    if profile and client and not {"*", profile} & set(client.profiles):
        raise profile_not_allowed()
    session = await the_session(api.store, at)
    preview = await api.preview(at, body, profile, session.user)
    if preview is None:
        raise invalid("messages must be a list of message objects.", "messages")
    return context_object(at.session, preview)
