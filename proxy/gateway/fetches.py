"""Background responses (``"background": true``), recorded when a client fetches them.

Their request is recorded at once, with a place for the answer, under the response's id.  The first
fetch for the same session fills that place; until then the answer is not in the session.
"""

from __future__ import annotations

import logging
from functools import partial

from proxy.chat.reply.answer import Reply as ChatReply
from proxy.formats.responses.api import Responses
from proxy.gateway.exchange import Services
from proxy.gateway.passthrough import Passthrough, answer_headers
from proxy.gateway.recording.tap import tap_of
from proxy.gateway.request import ProxyRequest
from proxy.memory.model import SessionKey
from proxy.memory.recording.amend import late_answer
from proxy.memory.recording.commit import fetch_key
from proxy.memory.store import StoreError
from proxy.wire.coding.decoding import IDENTITY, coding_of
from proxy.wire.headers import content_length
from proxy.wire.relay import relay
from proxy.wire.replies import PeekedReply, decoded
from proxy.wire.upstream import Reply

logger = logging.getLogger(__name__)

FORMAT = Responses()


class Fetches:
    """Relays fetched responses and records them."""

    def __init__(self, passthrough: Passthrough, services: Services) -> None:
        self._passthrough, self._services = passthrough, services

    async def serve(self, call: ProxyRequest) -> None:
        """Answer a call.  Raises UpstreamError and ClientGone before the answer."""
        if content_length(call.headers):
            return await self._passthrough.serve(call)
        with call.guard():
            reply = await self._passthrough.send_upstream(call, None)
            if reply.status == 200:
                reply = decoded(reply)
            try:
                await call.delivery.start(reply.status, answer_headers(reply, call))
                await self._deliver(call, reply)
            finally:
                await reply.close()

    async def _deliver(self, call: ProxyRequest, reply: Reply) -> None:
        length = content_length(reply.headers)
        if reply.status != 200 or coding_of(reply.headers) != IDENTITY:
            return await relay(reply, call.delivery, length)
        response_id = call.route.name.partition("/")[2]
        user = call.identity.user
        recorder = FetchedResponseRecorder(call.key, response_id, user, self._services)
        peeked = PeekedReply(reply)
        tap = await tap_of(peeked, recorder, FORMAT)
        await tap.relay(peeked, call.delivery)


class FetchedResponseRecorder:
    """A ReplyRecorder of a fetched response; ``user`` is that of the request that fetches it."""

    def __init__(
        self, key: SessionKey, response_id: str, user: str | None, services: Services
    ) -> None:
        self._key, self._response_id, self._user = key, response_id, user
        self._services = services

    async def commit(self, reply: ChatReply | None, *, incomplete: bool) -> None:
        if reply is None or reply.error or not reply.choices:  # not finished, or failed
            return
        recorder, count = self._services.recorder, self._services.counter(reply.model).count
        try:
            snapshot = await recorder.load_attempt(self._key, fetch_key(self._response_id))
        except StoreError as failure:
            logger.warning("an answer is not recorded now that it is fetched: %s", failure)
            return
        if self._user is not None and snapshot.owner not in (None, self._user):
            return
        answer = reply.choices[0]
        build_amendment = partial(late_answer, snapshot, answer, reply.usage, count)
        amendment = await self._services.threads.run(
            self._key.tenant, len(answer.body), build_amendment
        )
        if amendment is not None:
            await recorder.amend(self._key, amendment)

    async def amend(self, reply: ChatReply) -> None:
        """A fetched response is complete when it is committed."""
