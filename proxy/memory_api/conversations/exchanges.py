"""What memory did for an exchange, and a preview of what it would do for a request."""

from __future__ import annotations

from proxy.memory_api.api import Api
from proxy.memory_api.call import CallingClient, RawBody
from proxy.memory_api.conversations.message_edit import TAG
from proxy.memory_api.conversations.sessions import BY_PATH, SESSION, existing_session
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
async def list_exchanges(api: Api, key: SessionAt, limit: Limit, after: AfterSeq) -> ExchangeList:
    """List exchanges.

    The newest first.
    """
    # Only those that have messages: none comes twice, and new ones before the first.
    page = await api.store.exchanges(key, after or None, limit)
    if not page.items:
        await existing_session(api.store, key)
    data = [exchange_object(key.session, each.exchange, each.messages) for each in page.items]
    return ExchangeList.part(data, page.after)


@operation("GET", f"{ALL}/{{exchange}}", TAG)
async def get_exchange(api: Api, key: SessionAt, exchange_id: ExchangeAt) -> Exchange:
    """See what memory did for an exchange.

    Which messages, facts and passages stood in the prompt, by id; never their text.
    """
    exchange_and_ids = await api.store.exchange(key, exchange_id)
    if exchange_and_ids is None:
        await existing_session(api.store, key)
        raise exchange_not_found()
    return exchange_object(key.session, *exchange_and_ids)


@operation(
    "POST",
    f"{SESSION}/context",
    SESSIONS,
    examples={"question": {"messages": [{"role": "user", "content": "And on Sunday?"}]}},
    errors=(unknown_profile, profile_not_allowed),
)
async def preview_context(
    api: Api, key: SessionAt, context_request: ContextRequest, body: RawBody, client: CallingClient
) -> Context:
    """See what a request would become.

    Exactly the messages that would be sent, and why. Changes nothing.
    """
    profile = context_request.profile or ""
    if api.settings.profile(profile) is None:
        raise unknown_profile()
    if profile and client and not {"*", profile} & set(client.profiles):
        raise profile_not_allowed()
    session = await existing_session(api.store, key)
    preview = await api.preview(key, body, profile, session.user)
    if preview is None:
        raise invalid("messages must be a list of message objects.", "messages")
    return context_object(key.session, preview)
