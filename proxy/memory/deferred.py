"""An exchange that found no snapshot: it is reconciled when it is replayed from the spool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from proxy.memory.compose import Rules, Summarised
from proxy.memory.model import Ask, Commit, Entry, SessionKey, Snapshot
from proxy.memory.planner import Planner
from proxy.memory.request import Intent
from proxy.memory.transcript import Answer, Count, Occasion, Said, outline, transcribe
from proxy.memory.window import Window


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the request, as far as reconciling and recording need it."""

    role: str
    digest: str
    calls: tuple[str, ...]
    answers: str | None
    text: str
    blank: bool
    record: bytes
    shape: str = ""

    @classmethod
    def of(cls, said: Said) -> Utterance:
        return cls(
            role=said.role,
            digest=said.digest,
            calls=said.calls,
            answers=said.answers,
            text=said.text if said.role == "assistant" else "",
            blank=said.blank,
            record=said.record,
            shape=said.shape,
        )


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of the reply, as far as recording needs it."""

    index: int
    body: bytes
    wire: bytes | None
    calls: tuple[str, ...]
    digest: str
    blank: bool
    complete: bool
    shape: str = ""
    told: bytes | None = None

    @classmethod
    def of(cls, answer: Answer) -> Choice:
        return cls(
            index=answer.index,
            body=answer.body,
            wire=answer.wire,
            calls=answer.calls,
            digest=answer.digest,
            blank=answer.blank,
            complete=answer.complete,
            shape=answer.shape,
            told=answer.told,
        )


class Deferred(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to plan and record an exchange later."""

    said: tuple[Utterance, ...]
    answers: tuple[Choice, ...]
    occasion: Occasion
    intent: Intent
    window: Window

    @classmethod
    def of(
        cls,
        said: Sequence[Said],
        answers: Sequence[Answer],
        occasion: Occasion,
        intent: Intent,
        window: Window,
    ) -> Deferred:
        return cls(
            said=tuple(Utterance.of(x) for x in said),
            answers=tuple(Choice.of(x) for x in answers),
            occasion=occasion,
            intent=intent,
            window=window,
        )

    @property
    def ask(self) -> Ask:
        exchange = self.occasion.exchange
        return Ask(exchange.profile, whole=True, idempotency_key=self.occasion.idempotency_key)


async def settle(
    planner: Planner, key: SessionKey, snapshot: Snapshot, deferred: Deferred, count: Count
) -> Commit:
    """The commit of a deferred exchange, planned over the log as it is now.

    Only what was committed before the exchange began can be superseded: its client had not seen
    the rest.  Where it named nobody it is the session's owner's.
    """
    summarised = any(due.kind == "summary" for due in deferred.occasion.due)
    rules = Rules(
        window=deferred.window, inject=False, summarised=Summarised(0) if summarised else None
    )
    began = deferred.occasion.exchange.started_at
    seen = [entry for entry in snapshot.log if entry.card.created_at <= began]
    intent = _behind_unseen_turns(deferred.intent, snapshot, seen)
    planned = await planner.plan(key, snapshot, deferred.said, intent, rules)
    older = {entry.card.id for entry in seen}
    plan = replace(planned.plan, superseded=planned.plan.superseded & older)
    outlined = outline(plan, planned.prompt, deferred.said)
    occasion = replace(deferred.occasion, user=deferred.occasion.user or snapshot.owner)
    return transcribe(outlined, deferred.answers, occasion, count)


def _behind_unseen_turns(intent: Intent, snapshot: Snapshot, seen: Sequence[Entry]) -> Intent:
    """A rewind counts turns from the end that its client saw."""
    if not intent.rewind:
        return intent
    turns = {entry.position.turn for entry in snapshot.log}
    unseen = turns - {entry.position.turn for entry in seen}
    return replace(intent, rewind=intent.rewind + len(unseen))
