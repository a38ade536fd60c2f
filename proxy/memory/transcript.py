"""Writing an exchange down: a plan and a reply become a commit.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from proxy.memory.compose import Prompt
from proxy.memory.model import (
    Amendment,
    Card,
    Commit,
    Draft,
    Exchange,
    State,
    WindowMove,
    message_id,
)
from proxy.memory.reconcile import Fresh, Plan
from proxy.memory.request import Incoming
from proxy.memory.window import NOWHERE, Size
from proxy.memory.work import Due

Count = Callable[[bytes], int]
"""Tokens of a message's JSON."""


class Said(Incoming, Protocol):
    """A message of the request, with the JSON that is recorded of it."""

    @property
    def record(self) -> bytes: ...


class Answer(Protocol):
    """A choice of a reply."""

    @property
    def index(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def wire(self) -> bytes | None: ...
    @property
    def calls(self) -> tuple[str, ...]: ...
    @property
    def digest(self) -> str: ...
    @property
    def shape(self) -> str: ...
    @property
    def blank(self) -> bool: ...
    @property
    def complete(self) -> bool: ...
    @property
    def told(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a commit says beside the messages; see Commit."""

    exchange: Exchange
    user: str | None = None
    system: bytes | None = None
    system_tokens: int = 0
    idempotency_key: str | None = None
    ttl: int = 0
    choices: int = 1
    """Choices that the request asked for (``n``)."""
    due: tuple[Due, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a plan has to be kept while the reply is on its way: little, for there are many.

    ``window_start`` is the message that the window now starts at, "" the first one of the
    exchange itself, None where the window has not moved.  ``left``: see Prompt.  ``follows``: see
    Exchange.
    """

    said: tuple[tuple[Fresh, Said], ...]
    superseded: tuple[str, ...]
    activated: tuple[str, ...]
    reply_joins: str | None
    window_start: str | None
    window_anew: bool
    left: Size
    follows: str


def outline(plan: Plan, prompt: Prompt, m: Sequence[Said]) -> Outline:
    """What will be recorded of a request, but for the reply."""
    return Outline(
        said=tuple((fresh, m[fresh.i]) for fresh in plan.fresh),
        superseded=tuple(sorted(plan.superseded)),
        activated=plan.activated,
        reply_joins=plan.reply_joins,
        window_start=_window_start(plan, prompt) if prompt.moved or prompt.anew else None,
        window_anew=prompt.anew,
        left=prompt.left,
        follows=plan.follows,
    )


def _window_start(plan: Plan, prompt: Prompt) -> str:
    shown = (e.card.id for e in plan.log if e.position >= prompt.start)
    return next(shown, "") if prompt.start != NOWHERE else ""


def transcribe(
    outlined: Outline, answers: Sequence[Answer], occasion: Occasion, count: Count
) -> Commit:
    """The commit of an exchange whose reply has these choices so far."""
    exchange = occasion.exchange
    drafts = _said(outlined, exchange, count)
    base = len(drafts)
    turn = outlined.reply_joins or (drafts[-1].turn if drafts else message_id(exchange.id, base))
    by_index = {answer.index: answer for answer in answers}
    if 0 in by_index:
        drafts.append(_answered(by_index[0], turn, base, exchange, count))
    reserved = max(0, occasion.choices - 1)
    further = [by_index[k] for k in range(1, occasion.choices) if k in by_index]
    if 0 in by_index and len(further) == reserved and all(a.complete for a in further):
        drafts += [_answered(a, turn, base + a.index, exchange, count) for a in further]
        reserved = 0  # of those that are still on their way, ``amend`` will know more
    return Commit(
        exchange=msgspec.structs.replace(
            exchange, size=len(drafts) + reserved, follows=outlined.follows
        ),
        user=occasion.user,
        drafts=tuple(drafts),
        reserved=reserved,
        superseded=outlined.superseded,
        activated=outlined.activated,
        system=occasion.system,
        system_tokens=occasion.system_tokens,
        window=_window(outlined, exchange, drafts),
        idempotency_key=occasion.idempotency_key,
        ttl=occasion.ttl,
        due=_due(occasion, outlined.left, drafts),
    )


def _due(occasion: Occasion, left: Size, drafts: Sequence[Draft]) -> tuple[Due, ...]:
    """A summary only if the next request will find the window too small for what was said."""
    tokens = [draft.card.tokens for draft in drafts if draft.state == "active"]
    if len(tokens) > left.messages or sum(tokens) > left.tokens:
        return occasion.due
    return tuple(due for due in occasion.due if due.kind != "summary")


def amend(
    commit: Commit, answers: Sequence[Answer], usage: bytes | None, count: Count
) -> Amendment | None:
    """What a reply has brought since its commit, or None."""
    exchange = commit.exchange
    base = len(commit.drafts) - 1
    drafts: list[Draft] = []
    if commit.reserved and commit.drafts:
        turn = commit.drafts[-1].turn
        further = (a for a in answers if 0 < a.index <= commit.reserved)
        drafts = [_answered(a, turn, base + a.index, exchange, count) for a in further]
    if not drafts and (usage is None or exchange.usage is not None):
        return None
    return Amendment(exchange=exchange.id, usage=usage, drafts=tuple(drafts))


def _said(outlined: Outline, exchange: Exchange, count: Count) -> list[Draft]:
    drafts: list[Draft] = []
    turn = ""
    for index, (fresh, message) in enumerate(outlined.said):
        id = message_id(exchange.id, index)
        turn = id if fresh.opens else fresh.joins or turn or id
        drafts.append(_draft(fresh, message, id, turn, exchange, count))
    return drafts


def _draft(
    fresh: Fresh, message: Said, id: str, turn: str, exchange: Exchange, count: Count
) -> Draft:
    body = message.record  # made anew each time it is asked for
    card = Card(
        id=id,
        role=message.role,
        tokens=count(body),
        digest=message.digest,
        calls=message.calls,
        answers=message.answers,
        evidence=fresh.replaces.evidence if fresh.replaces else False,
        created_at=exchange.created_at,
        shape=message.shape,
    )
    return Draft(card=card, turn=turn, body=body)


def _answered(answer: Answer, turn: str, index: int, exchange: Exchange, count: Count) -> Draft:
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
        told=0 if answer.told is None else count(answer.told),
    )
    state: State = "active" if answer.index == 0 else "superseded"
    return Draft(card=card, turn=turn, body=answer.body, wire=answer.wire, state=state)


def _window(outlined: Outline, exchange: Exchange, drafts: Sequence[Draft]) -> WindowMove | None:
    start = outlined.window_start
    if start == "" and drafts:
        start = drafts[0].card.id
    if not start:
        return None
    return WindowMove(profile=exchange.profile, start=start, anew=outlined.window_anew)
