"""Previews of chat requests: prepared exactly like real ones, in mode ``read``, and not sent.

Nothing is composed here, so that a preview is what would have been sent.
"""

from __future__ import annotations

from functools import partial

import msgspec

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest
from proxy.errors import unknown_profile
from proxy.formats.chat_completions import ChatCompletions
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import ChatExchange, Services
from proxy.gateway.identity import Identity
from proxy.gateway.outgoing import prepare
from proxy.gateway.prompt.prompt import AssembledPrompt
from proxy.learning.prompt_cards import Block
from proxy.memory.model import Injection, SessionKey
from proxy.recall.results import RecallHit
from proxy.settings import Settings

FORMAT = ChatCompletions()
"""The format of a preview's request and messages."""


class PreviewResult(msgspec.Struct, frozen=True):
    """The messages (JSON) that would be sent, and their tokens.

    ``injection`` is what would be recorded of them.  ``count`` is the number of passages, standing
    instructions, facts and examples.  ``recalled``: what recall found, standing instructions first.
    ``known``: the blocks of learned memory.  ``rewritten``: words that recall searched beside the
    question's.
    """

    messages: tuple[bytes, ...]
    tokens: int
    injection: Injection
    count: int
    recalled: tuple[RecallHit, ...]
    known: tuple[Block, ...]
    summary: str | None
    rewritten: str | None


class Preview:
    """Prepares requests that are never sent; keeps and records nothing."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._settings, self._services = settings, services

    async def __call__(
        self, key: SessionKey, body: bytes, profile: str, user: str | None
    ) -> PreviewResult | None:
        """Preview a request's body; None if it has no list of messages, or too many of them.

        ``profile``: "" is the default one.  Raises ProxyError 400 ``unknown_profile``, and 503
        ``memory_unavailable`` where a chat would go on without memory.
        """
        context = self._context(key, profile, user)
        threads, max_media_bytes = self._services.threads, context.profile.max_inline_media_bytes
        request = await threads.run(
            key.tenant, len(body), partial(FORMAT.read, body, max_media_bytes)
        )
        if not isinstance(request, ChatRequest):
            return None
        exchange = ChatExchange.start(FORMAT, request, body, context, self._services)
        outgoing = await prepare(exchange, self._services)
        prompt = outgoing.prompt
        assert isinstance(prompt, AssembledPrompt)  # a preview does not go on without memory
        messages = await threads.run(key.tenant, len(body), lambda: _messages_in(outgoing.body()))
        return PreviewResult(
            messages=messages,
            tokens=await threads.sum_tokens(key.tenant, exchange.counter.count, messages),
            injection=outgoing.injection(outgoing.report, self._services.known_runs),
            count=prompt.recalled,
            recalled=prompt.recall.recollection.all,
            known=prompt.known.blocks,
            summary=prompt.prompt.summary.text if prompt.prompt.summary else None,
            rewritten=(prompt.rewritten.added or None) if prompt.rewritten else None,
        )

    def _context(self, key: SessionKey, profile: str, user: str | None) -> RequestContext:
        settings = self._settings.profile(profile)
        if settings is None:
            raise unknown_profile()
        return RequestContext(
            key=key,
            identity=Identity(session=key.session, user=user, mode="read", profile=profile),
            profile_rules=ProfileRules.of(settings),
            fails_closed=True,
        )


def _messages_in(body: bytes) -> tuple[bytes, ...]:
    """The JSON of each message.  Not read as a request: with memory it may be over its bounds."""
    return tuple(jsontext.items(jsontext.fields(body)["messages"]))
