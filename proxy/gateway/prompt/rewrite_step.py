"""Rewrites follow-up questions for recall: a model adds what they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from proxy.chat.message import ChatMessage, Piece, last_user_index, read_stored
from proxy.chat.request import ChatRequest
from proxy.gateway.context import RequestContext
from proxy.recall.query.query import RecallQuery
from proxy.rewrite.question import Utterance, is_followup
from proxy.rewrite.rewriter import Rewriter, Rewriting, Rewritten

MAX_PRECEDING = 4
"""Messages before the question that the model is given."""

MAX_SCANNED = 16
"""Messages searched for these, since messages of tools are in between."""

MAX_READ_BYTES = 100_000
"""Larger messages (bytes) are skipped."""


class RewriteStep:
    """Starts and finishes rewrites; does nothing without a ``rewriter``."""

    def __init__(self, rewriter: Rewriter | None = None) -> None:
        self._rewriter = rewriter

    def begin(self, context: RequestContext, request: ChatRequest) -> Rewriting | None:
        """Start before the session is loaded, if the request itself has the preceding messages."""
        messages = request.messages
        ends_with_question = bool(messages) and messages[-1].role == "user"
        if not (ends_with_question and self._should_rewrite(context)):
            return None
        preceding = preceding_utterances(messages, len(messages) - 1)
        return self._begin(context, request, preceding) if preceding else None

    async def finish(
        self,
        rewriting: Rewriting | None,
        context: RequestContext,
        request: ChatRequest,
        messages: Sequence[Piece],
        query: RecallQuery,
    ) -> tuple[RecallQuery, Rewritten | None]:
        """The query with the words that the rewrite adds; None: nothing was rewritten.

        If ``begin`` has not started, the rewrite is made from the prompt's ``messages``.
        """
        if (
            not self._should_rewrite(context)
            or query.replayed is not None
            or query.has_nowhere_to_look
        ):
            return query, None
        at = last_user_index(messages)
        if rewriting is None and at is not None:
            preceding = preceding_utterances(messages, at)
            rewriting = self._begin(context, request, preceding) if preceding else None
        if rewriting is None:
            return query, None
        rewritten = await rewriting.result()
        if not rewritten.added:
            return query, rewritten
        return replace(query, text=f"{query.text}\n{rewritten.added}"), rewritten

    def _should_rewrite(self, context: RequestContext) -> bool:
        recall = context.profile.recall
        return self._rewriter is not None and recall.enabled and recall.rewrite.enabled

    def _begin(
        self, context: RequestContext, request: ChatRequest, preceding: Sequence[Utterance]
    ) -> Rewriting | None:
        question = request.last_user_text
        if self._rewriter is None or not is_followup(question):
            return None
        settings = context.profile.recall.rewrite
        tenant = context.key.tenant
        return self._rewriter.begin(tenant, settings, request.model, question, preceding)


def preceding_utterances(messages: Sequence[Piece], at: int) -> tuple[Utterance, ...]:
    """The last messages of user and assistant before index ``at``, oldest first."""
    return tuple(reversed([*islice(_utterances_backwards(messages, at), MAX_PRECEDING)]))


def _utterances_backwards(messages: Sequence[Piece], at: int) -> Iterator[Utterance]:
    for piece in reversed(messages[max(0, at - MAX_SCANNED) : at]):
        if len(piece.raw if isinstance(piece, ChatMessage) else piece) > MAX_READ_BYTES:
            continue
        message = piece if isinstance(piece, ChatMessage) else read_stored(piece)
        text = message.typed_text.strip()
        if message.role in ("user", "assistant") and text:
            yield Utterance(message.role, text)
