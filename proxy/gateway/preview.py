"""What a chat request would become: the way of a real one up to the call of the upstream.

The same exchange is prepared, in mode ``read``, and not sent: what a preview shows is what would
have gone, because nothing here composes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from proxy.chat.request import parse
from proxy.errors import unknown_profile
from proxy.gateway.exchange import ChatExchange, Means
from proxy.gateway.identity import Identity
from proxy.gateway.profile import SideRequests
from proxy.gateway.situation import Situation
from proxy.learning.known import Block
from proxy.memory.model import Injection, SessionKey
from proxy.memory.transcript import Count
from proxy.recall.found import Found
from proxy.settings import Settings


@dataclass(frozen=True, slots=True)
class Previewed:
    """The messages as they would be sent, and how many tokens they are.

    ``did`` is what the exchange's record would say, but for the time it took.  ``count`` is how
    many passages, wishes, facts and examples there are.  ``recalled``: what recall found, standing
    wishes first.  ``known`` is what is known of the person and of how to answer.
    """

    messages: tuple[bytes, ...]
    tokens: int
    did: Injection
    count: int
    recalled: tuple[Found, ...]
    known: tuple[Block, ...]
    summary: str | None


class Preview:
    """Prepares requests that are never sent; keeps and records nothing."""

    def __init__(self, settings: Settings, means: Means) -> None:
        self._settings, self._means = settings, means

    async def __call__(
        self, key: SessionKey, body: bytes, profile: str, user: str | None
    ) -> Previewed | None:
        """Preview a request's body; None if it has no list of messages, or too many of them.

        ``profile``: "" is the default one.  Raises ProxyError 400 ``unknown_profile``, and 503
        ``memory_unavailable`` where a chat would go on without memory.
        """
        situation = self._situation(key, profile, user)
        aside, media = self._means.aside, situation.profile.max_inline_media_bytes
        request = await aside.run(len(body), partial(parse, body, media))
        if request is None:
            return None
        exchange = ChatExchange(request, body, situation, self._means)
        await exchange.prepare()
        sent = await aside.run(len(body), lambda: parse(exchange.upstream_body(), media))
        assert sent is not None  # it was made of one that could be read
        messages = tuple(message.raw for message in (*sent.leading, *sent.messages))
        adds = exchange.additions
        assert adds is not None  # a preview does not go on without memory
        return Previewed(
            messages=messages,
            tokens=await self._tokens(messages, self._means.counter(request.model).count),
            did=exchange.injection(),
            count=exchange.account.recalled,
            recalled=adds.reminder.recollection.all,
            known=adds.known.blocks,
            summary=adds.prompt.summary.text if adds.prompt.summary else None,
        )

    def _situation(self, key: SessionKey, profile: str, user: str | None) -> Situation:
        chosen = self._settings.profile(profile or None)
        if chosen is None:
            raise unknown_profile()
        return Situation(
            key=key,
            identity=Identity(session=key.session, user=user, mode="read", profile=profile),
            profile=chosen,
            side=SideRequests(chosen.side_requests),
            closed=True,
        )

    async def _tokens(self, messages: Sequence[bytes], count: Count) -> int:
        size = sum(map(len, messages))
        return await self._means.aside.run(size, lambda: sum(map(count, messages)))
