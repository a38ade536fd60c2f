"""A message that points back is written out for recall, on behalf of chat requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from proxy.chat.message import ChatMessage, Piece, last_user, read_stored
from proxy.chat.request import ChatRequest
from proxy.gateway.context import RequestContext
from proxy.recall.query.query import RecallQuery
from proxy.rewrite.question import Utterance, is_followup
from proxy.rewrite.rewriter import Rewriter, Rewriting, Rewritten

BEFORE = 4
"""Messages before the question that tell what it points at."""

LOOKED_AT = 16
"""So many messages are looked at for them: between them are those of tools."""

READABLE = 100_000
"""Bytes of a message that is read for it."""


class RewriteStep:
    """Without a ``rewriter`` nothing is rewritten."""

    def __init__(self, rewriter: Rewriter | None = None) -> None:
        self._rewriter = rewriter

    def begin(self, context: RequestContext, request: ChatRequest) -> Rewriting | None:
        """As soon as the request comes, where it brings itself what was said before."""
        messages = request.messages
        asks = bool(messages) and messages[-1].role == "user"
        if not (asks and self._wanted(context)):
            return None
        before = said_before(messages, len(messages) - 1)
        return self._begin(context, request, before) if before else None

    async def finish(
        self,
        begun: Rewriting | None,
        context: RequestContext,
        request: ChatRequest,
        messages: Sequence[Piece],
        query: RecallQuery,
    ) -> tuple[RecallQuery, Rewritten | None]:
        """The query with what the question points at; None: it was not asked for.

        ``messages`` are those that are sent: what was said before may be in the window alone.
        """
        if not self._wanted(context) or query.again is not None or query.has_nowhere_to_look:
            return query, None
        at = last_user(messages)
        if begun is None and at is not None and (before := said_before(messages, at)):
            begun = self._begin(context, request, before)
        if begun is None:
            return query, None
        rewritten = await begun.result()
        if not rewritten.added:
            return query, rewritten
        return replace(query, text=f"{query.text}\n{rewritten.added}"), rewritten

    def _wanted(self, context: RequestContext) -> bool:
        recall = context.profile.recall
        return self._rewriter is not None and recall.enabled and recall.rewrite.enabled

    def _begin(
        self, context: RequestContext, request: ChatRequest, before: Sequence[Utterance]
    ) -> Rewriting | None:
        question = request.last_user_text
        if self._rewriter is None or not is_followup(question):
            return None
        settings = context.profile.recall.rewrite
        tenant = context.key.tenant
        return self._rewriter.begin(tenant, settings, request.model, question, before)


def said_before(messages: Sequence[Piece], at: int) -> tuple[Utterance, ...]:
    """What user and assistant said last before a message, oldest first; nothing of tools."""
    return tuple(reversed([*islice(_back(messages, at), BEFORE)]))


def _back(messages: Sequence[Piece], at: int) -> Iterator[Utterance]:
    for piece in reversed(messages[max(0, at - LOOKED_AT) : at]):
        if len(piece.raw if isinstance(piece, ChatMessage) else piece) > READABLE:
            continue
        message = piece if isinstance(piece, ChatMessage) else read_stored(piece)
        text = message.own.strip()
        if message.role in ("user", "assistant") and text:
            yield Utterance(message.role, text)
