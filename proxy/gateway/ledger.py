"""Recording one exchange: what was said, once the reply is there.  Recording never fails the chat.

Made when the request is on its way, and as small as can be: streams last long, and there are many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from proxy.chat import jsontext
from proxy.chat.answer import Choice
from proxy.chat.calltext import in_words
from proxy.chat.reply import Reply
from proxy.gateway.aside import Aside
from proxy.gateway.scribe import TOO_LARGE
from proxy.gateway.tool_runs import ToolLog
from proxy.memory.clock import steady
from proxy.memory.deferred import Deferred
from proxy.memory.model import Amendment, Commit, Exchange, Injection, SessionKey
from proxy.memory.recorder import Fate, Recorder
from proxy.memory.request import Intent
from proxy.memory.transcript import Count, Occasion, Outline, Said, amend, transcribe
from proxy.memory.window import Window
from proxy.memory.work import Due
from proxy.telemetry import Telemetry

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heading:
    """What is recorded of an exchange beside the messages.  ``system`` is empty if it is known.

    ``forced``: the model had to call a tool, so that its calls may be the answer.
    """

    id: str
    profile: str
    began: float
    model: str | None
    choices: int
    user: str | None
    system: tuple[bytes, ...]
    idempotency_key: str | None
    ttl: int
    injection: Injection
    due: tuple[Due, ...] = ()
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Unplanned:
    """A request that found no snapshot: it is reconciled when its record is replayed."""

    said: Sequence[Said]
    intent: Intent
    window: Window


class Ledger:
    """Where the scribe writes the reply.

    ``size`` is that of the request's new messages, in bytes.
    """

    def __init__(
        self,
        key: SessionKey,
        heading: Heading,
        outlined: Outline | Unplanned,
        recorder: Recorder,
        count: Count,
        telemetry: Telemetry,
        aside: Aside,
        size: int = 0,
        tools: ToolLog | None = None,
    ) -> None:
        self._key, self._heading, self._outlined = key, heading, outlined
        self._recorder, self._count, self._telemetry = recorder, count, telemetry
        self._aside, self._size = aside, size
        self._tools = tools
        self._commit: Commit | None = None
        self._told_usage = self._counted_cache = False

    async def commit(self, reply: Reply | None, *, incomplete: bool) -> None:
        """Record the exchange; durable on return, or counted as lost."""
        clock = time.perf_counter()
        fate = await self._record(reply, await self._occasion(reply, incomplete))
        self._telemetry.committed(time.perf_counter() - clock)
        if fate == "lost":
            self._telemetry.lost()
        else:
            self._telemetry.outcome(fate)
        if fate == "erased":
            logger.warning("an exchange is not recorded: it began before an erasure")
        if reply is not None:
            self._count_cache(reply)

    def _count_cache(self, reply: Reply) -> None:
        """Once, in whichever of the two writes the usage has come by."""
        if reply.usage is None or self._counted_cache:
            return
        self._counted_cache = True
        self._telemetry.cached(reply.cached_tokens or 0)
        self._telemetry.cache_written(reply.cache_write_tokens or 0)

    async def _record(self, reply: Reply | None, occasion: Occasion) -> Fate:
        self._told_usage = occasion.exchange.usage is not None
        answers = self._choices(reply) if reply else ()
        outlined = self._outlined
        if isinstance(outlined, Unplanned):
            unplanned = (outlined.said, answers, occasion, outlined.intent, outlined.window)
            deferred = await self._aside.run(self._size, partial(Deferred.of, *unplanned))
            return await self._recorder.defer(self._key, deferred)
        size = self._size + sum(len(answer.body) for answer in answers)
        planned = (outlined, answers, occasion, self._count)
        self._commit = await self._aside.run(size, partial(transcribe, *planned))
        return await self._recorder.record(self._key, self._commit)

    async def amend(self, reply: Reply) -> None:
        """Record what came after choice 0 was complete."""
        self._count_cache(reply)
        amendment = None
        if self._commit is not None:
            amendment = amend(self._commit, self._choices(reply), reply.usage, self._count)
        elif reply.usage is not None and not self._told_usage:
            amendment = Amendment(exchange=self._heading.id, usage=reply.usage)
        if amendment is not None:
            await self._recorder.amend(self._key, amendment)

    def _choices(self, reply: Reply) -> tuple[Choice, ...]:
        if not self._heading.forced:
            return reply.choices
        return tuple(
            msgspec.structs.replace(choice, told=in_words(choice.body)) if choice.calls else choice
            for choice in reply.choices
        )

    async def _occasion(self, reply: Reply | None, incomplete: bool) -> Occasion:
        heading = self._heading
        return Occasion(
            exchange=self._exchange(reply, incomplete),
            user=heading.user,
            system=b"[" + b",".join(heading.system) + b"]" if heading.system else None,
            system_tokens=await self._tokens(heading.system),
            idempotency_key=heading.idempotency_key,
            ttl=heading.ttl,
            choices=heading.choices,
            due=heading.due,
        )

    async def _tokens(self, messages: Sequence[bytes]) -> int:
        size = sum(map(len, messages))
        return await self._aside.run(size, lambda: sum(map(self._count, messages)))

    def _exchange(self, reply: Reply | None, incomplete: bool) -> Exchange:
        heading = self._heading
        first = reply.choices[0] if reply and reply.choices else None
        return Exchange(
            id=heading.id,
            profile=heading.profile,
            started_at=heading.began,
            created_at=steady(),
            model=_encodable((reply.model if reply else None) or heading.model),
            asked=_encodable(heading.model),
            incomplete=incomplete,
            finish_reason=_encodable(first.finish_reason) if first else None,
            usage=reply.usage if reply else None,
            memory=self._injection(reply),
        )

    def _injection(self, reply: Reply | None) -> Injection:
        """What memory did, and whether it could keep all of the answer."""
        injection = self._heading.injection
        if reply is not None and reply.truncated:
            injection = msgspec.structs.replace(injection, reason=TOO_LARGE)
        return self._tools.into(injection) if self._tools else injection


def _encodable(said: str | None) -> str | None:
    """Clients and upstreams may say half a surrogate pair, which no store keeps."""
    return None if said is None else jsontext.well_formed(said)
