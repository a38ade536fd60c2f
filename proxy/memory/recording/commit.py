"""Makes the commit of an exchange from a plan and a reply, at once or later from the spool.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.chat.tools.calltext import tokens_without_calls
from proxy.memory.model import (
    Card,
    Commit,
    Draft,
    Entry,
    Exchange,
    LoadOptions,
    SessionKey,
    SessionVersion,
    Snapshot,
    State,
    WindowMove,
    WorkRequest,
    message_id,
)
from proxy.memory.planner import Planner
from proxy.memory.prompt.compose import Prompt, PromptRules, SummaryRules
from proxy.memory.prompt.window import LOG_END, Size, Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.plan import NewMessage, Plan
from proxy.memory.reconciliation.rebase import replacing_broken_off

MAX_PARTS_BYTES = 262_144
"""Bytes of a request's messages that are spooled in parts too: more would fill the spool."""

PLANNED_BYTES = 50
"""Bytes whose tokens take about as long to count as planning one message."""


class SpooledMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the request as the spool stores it: what reconciling and recording need.

    ``apart``: see ChatMessage; empty if there is one part only or parts are not stored.
    """

    role: str
    digest: str
    calls: tuple[str, ...]
    answers: str | None
    text: str
    blank: bool
    record: bytes
    shape: str = ""
    parts: tuple[tuple[SpooledMessage, ...], ...] = msgspec.field(name="apart", default=())

    @classmethod
    def of(cls, said: ChatMessage) -> SpooledMessage:
        parts = said.splitter(said) if said.splitter is not None else ()
        return cls(
            role=said.role,
            digest=said.digest,
            calls=said.calls,
            answers=said.answers,
            text=said.text if said.role == "assistant" else "",
            blank=said.blank,
            record=said.record,
            shape=said.shape,
            parts=tuple(tuple(map(cls.of, runs)) for runs in parts) if len(parts) > 1 else (),
        )

    @property
    def message(self) -> ChatMessage:
        """The message, restored from its record."""
        return ChatMessage(
            raw=self.record,
            role=self.role,
            digest=self.digest,
            shape=self.shape,
            calls=self.calls,
            answers=self.answers,
            text=self.text,
            blank=self.blank,
            splitter=self._parts if self.parts else None,
            max_inline_media_bytes=len(self.record),
        )

    def _parts(self, _: ChatMessage) -> list[list[ChatMessage]]:
        return [[run.message for run in runs] for runs in self.parts]


def spooled_messages(said: Iterable[ChatMessage]) -> Iterator[SpooledMessage]:
    """All messages, with parts up to ``MAX_PARTS_BYTES``."""
    room = MAX_PARTS_BYTES
    for message in said:
        if message.splitter is not None and len(message.record) > room:
            message = replace(message, splitter=None)
        utterance = SpooledMessage.of(message)
        room -= len(utterance.record) if utterance.parts else 0
        yield utterance


class Deferred(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to plan and record an exchange later."""

    messages: tuple[SpooledMessage, ...] = msgspec.field(name="said")
    answers: tuple[Choice, ...]
    meta: ExchangeMeta = msgspec.field(name="occasion")
    intent: Intent
    window: Window

    @classmethod
    def of(
        cls,
        said: Sequence[ChatMessage],
        answers: Sequence[Choice],
        meta: ExchangeMeta,
        intent: Intent,
        window: Window,
    ) -> Deferred:
        return cls(
            messages=tuple(spooled_messages(said)),
            answers=tuple(compact_choice(x) for x in answers),
            meta=meta,
            intent=intent,
            window=window,
        )

    @property
    def load_options(self) -> LoadOptions:
        exchange = self.meta.exchange
        return LoadOptions(exchange.profile, whole=True, idempotency_key=self.meta.idempotency_key)


def compact_choice(answer: Choice) -> Choice:
    """A choice without fields that its body and exchange repeat; its text beside calls is
    counted."""
    return replace(answer, text=answer.text if answer.calls else "", finish_reason=None)


async def plan_deferred(
    planner: Planner, key: SessionKey, snapshot: Snapshot, deferred: Deferred, count: Count
) -> Commit:
    """The commit of a deferred exchange, planned over the log as it is now.

    It supersedes only what was committed before the exchange began, as its client had not seen the
    rest, or an attempt that was broken off.  If it names no user, the session's owner is its user.
    """
    has_summaries = any(due.kind == "summary" for due in deferred.meta.work_requests)
    rules = PromptRules(
        window=deferred.window, inject=False, summaries=SummaryRules(0) if has_summaries else None
    )
    log, began = snapshot.log, deferred.meta.exchange.started_at
    intent = _behind_unseen_turns(deferred.intent, log, began)
    said = await planner.run(
        key.tenant, len(deferred.messages), lambda: [each.message for each in deferred.messages]
    )
    planned = await planner.plan(key, snapshot, said, intent, rules)

    def built() -> Commit:
        older = {entry.card.id for entry in log if entry.card.created_at <= began}
        plan = replace(planned.plan, superseded=planned.plan.superseded & older)
        pending = pending_record(plan, planned.prompt, planned.messages, snapshot)
        meta = replace(deferred.meta, user=deferred.meta.user or snapshot.owner)
        commit = build_commit(pending, deferred.answers, meta, count)
        return replace(replacing_broken_off(commit, snapshot), planned_for=None)

    bodies = [*(message.raw for message in said), *(each.body for each in deferred.answers)]
    size = len(log) + len(said) + sum(map(len, bodies)) // PLANNED_BYTES
    return await planner.run(key.tenant, size, built)


def _behind_unseen_turns(intent: Intent, log: Sequence[Entry], began: float) -> Intent:
    """A rewind counts turns from the end that its client saw."""
    if not intent.rewind:
        return intent
    turns = {entry.position.turn for entry in log}
    unseen = turns - {e.position.turn for e in log if e.card.created_at <= began}
    return replace(intent, rewind=intent.rewind + len(unseen))


Count = Callable[[bytes], int]
"""Tokens of a message's JSON."""


class ExchangeMeta(msgspec.Struct, frozen=True, gc=False):
    """The fields of a commit other than the messages; see Commit."""

    exchange: Exchange
    user: str | None = None
    system: bytes | None = None
    system_tokens: int = 0
    idempotency_key: str | None = None
    ttl: int = 0
    choices: int = 1
    """Choices that the request asked for (``n``)."""
    work_requests: tuple[WorkRequest, ...] = msgspec.field(name="due", default=())


class PendingMessage(msgspec.Struct, frozen=True, gc=False):
    """A new message of the request; ``tokens`` is None if not counted yet.

    A request may have thousands, which live as long as its stream: the garbage collector would stop
    all streams to look at those of all requests.
    """

    new: NewMessage
    message: ChatMessage
    tokens: int | None = None


class PendingRecord(msgspec.Struct, frozen=True, gc=False):
    """The part of a plan that is held until the reply is complete: small, as there are many.

    ``window_start`` is the message that the window now starts at, "" for the first one of the
    exchange itself, None if the window has not moved.  ``remaining``: see Prompt.  ``follows``: see
    Exchange.  ``supersedes_siblings`` and ``planned_for``: see Commit.
    """

    pending_messages: tuple[PendingMessage, ...]
    superseded: tuple[str, ...]
    activated: tuple[str, ...]
    reply_joins: str | None
    window_start: str | None
    window_may_move_back: bool
    remaining: Size
    follows: str
    supersedes_siblings: bool = False
    planned_for: SessionVersion | None = None

    @property
    def messages(self) -> Sequence[ChatMessage]:
        return [each.message for each in self.pending_messages]

    def recorded(self) -> PendingRecord:
        """The same with only those parts of messages that go into history."""
        said = (replace(each, message=each.message.recorded()) for each in self.pending_messages)
        return replace(self, pending_messages=tuple(said))

    def counted(self, count: Count) -> PendingRecord:
        said = (replace(each, tokens=count(each.message.record)) for each in self.pending_messages)
        return replace(self, pending_messages=tuple(said))


def pending_record(
    plan: Plan,
    prompt: Prompt,
    m: Sequence[ChatMessage],
    snapshot: Snapshot,
    *,
    supersedes_siblings: bool = False,
) -> PendingRecord:
    """What will be recorded of a request; ``snapshot`` is the session before it."""
    gone = plan.superseded
    return PendingRecord(
        pending_messages=tuple(PendingMessage(fresh, m[fresh.i]) for fresh in plan.new_messages),
        superseded=tuple([e.card.id for e in snapshot.log if e.card.id in gone]) if gone else (),
        activated=plan.activated,
        reply_joins=plan.reply_joins,
        window_start=_window_start(plan, prompt)
        if prompt.start_moved or prompt.start_recomputed
        else None,
        window_may_move_back=prompt.start_recomputed,
        remaining=prompt.remaining,
        follows=plan.follows,
        supersedes_siblings=supersedes_siblings,
        planned_for=SessionVersion.of(snapshot),
    )


def _window_start(plan: Plan, prompt: Prompt) -> str:
    shown = (e.card.id for e in plan.log if e.position >= prompt.start)
    return next(shown, "") if prompt.start != LOG_END else ""


def build_commit(
    pending: PendingRecord, answers: Sequence[Choice], meta: ExchangeMeta, count: Count
) -> Commit:
    """The commit of an exchange whose reply has these choices so far."""
    exchange = meta.exchange
    drafts = _request_drafts(pending, exchange, count)
    base = len(drafts)
    turn = pending.reply_joins or (drafts[-1].turn if drafts else message_id(exchange.id, base))
    by_index = {answer.index: answer for answer in answers}
    if 0 in by_index:
        drafts.append(answer_draft(by_index[0], turn, base, exchange, count))
    reserved = max(0, meta.choices - 1)
    further = [by_index[k] for k in range(1, meta.choices) if k in by_index]
    if 0 in by_index and len(further) == reserved and all(a.complete for a in further):
        drafts += [answer_draft(a, turn, base + a.index, exchange, count) for a in further]
        reserved = 0  # of those that are still on their way, ``amend`` will know more
    return Commit(
        exchange=replace(exchange, size=len(drafts) + reserved, follows=pending.follows),
        user=meta.user,
        drafts=tuple(drafts),
        reserved=reserved,
        superseded=pending.superseded,
        activated=pending.activated,
        system=meta.system,
        system_tokens=meta.system_tokens,
        window=_window(pending, exchange, drafts),
        idempotency_key=meta.idempotency_key,
        ttl=meta.ttl,
        work_requests=_due(meta, pending.remaining, drafts),
        supersedes_siblings=pending.supersedes_siblings,
        planned_for=pending.planned_for,
    )


def _due(meta: ExchangeMeta, left: Size, drafts: Sequence[Draft]) -> tuple[WorkRequest, ...]:
    """The work that is due; a summary only if the window will overflow at the next request."""
    tokens = [draft.card.tokens for draft in drafts if draft.state == "active"]
    if len(tokens) > left.messages or sum(tokens) > left.tokens:
        return meta.work_requests
    return tuple(due for due in meta.work_requests if due.kind != "summary")


def _request_drafts(pending: PendingRecord, exchange: Exchange, count: Count) -> list[Draft]:
    drafts: list[Draft] = []
    turn = ""
    for index, said in enumerate(pending.pending_messages):
        id = message_id(exchange.id, index)
        turn = id if said.new.begins_turn else said.new.joins or turn or id
        drafts.append(_draft(said, id, turn, exchange, count))
    return drafts


def _draft(said: PendingMessage, id: str, turn: str, exchange: Exchange, count: Count) -> Draft:
    replaced, message = said.new.replaces, said.message
    body = message.record  # made anew each time it is asked for
    card = Card(
        id=id,
        role=message.role,
        tokens=count(body) if said.tokens is None else said.tokens,
        digest=message.digest,
        calls=message.calls,
        answers=message.answers,
        evidence=replaced.evidence if replaced else False,
        created_at=exchange.created_at,
        shape=message.shape,
        side_text_tokens=tokens_without_calls(message.text, message.calls, count),
    )
    return Draft(card=card, turn=turn, body=body)


def answer_draft(answer: Choice, turn: str, index: int, exchange: Exchange, count: Count) -> Draft:
    card = Card(
        id=message_id(exchange.id, index),
        role="assistant",
        tokens=0 if answer.blank else count(answer.body),
        digest=answer.digest,
        calls=answer.calls,
        origin="response",
        evidence=True,
        incomplete=not answer.complete,
        blank=answer.blank,
        choice=answer.index,
        created_at=exchange.created_at,
        shape=answer.shape,
        call_text_tokens=0 if answer.unanswered_form is None else count(answer.unanswered_form),
        side_text_tokens=tokens_without_calls(answer.text, answer.calls, count)
        if answer.unanswered_form is None
        else 0,
    )
    state: State = "active" if answer.index == 0 else "superseded"
    return Draft(card=card, turn=turn, body=answer.body, wire=answer.wire, state=state)


def _window(
    pending: PendingRecord, exchange: Exchange, drafts: Sequence[Draft]
) -> WindowMove | None:
    start = pending.window_start
    if start == "" and drafts:
        start = drafts[0].card.id
    if not start:
        return None
    return WindowMove(
        profile=exchange.profile, start=start, may_move_back=pending.window_may_move_back
    )


ROOM_FOR_ANSWER = 2
"""``choices`` of an exchange without an answer yet: reserves a place for one after it."""


def fetch_key(name: str) -> str:
    """The idempotency key of an exchange whose answer will be fetched by this name; no client can
    send such a key."""
    return f"\N{PILCROW SIGN}{name}"
