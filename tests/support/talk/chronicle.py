"""A session with summaries in the hands of the real decisions, over a real store, without HTTP.

Messages are names, as in ``tests.support.talk.shorthand``; a summary lists the names that it tells.
So it is known of every prompt what the summary in it tells, what is shown as it was said, and what
is not.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.chat.reply.answer import Choice
from proxy.gateway.context import ProfileRules, RequestContext, load_options_of, rules_of, window_of
from proxy.gateway.identity import NO_IDENTITY
from proxy.gateway.recording.exchange_recorder import due_of
from proxy.memory.model import Entry, Exchange, LoadOptions, SessionKey, Snapshot
from proxy.memory.planner import PlannedRequest
from proxy.memory.prompt.compose import Prompt, PromptRules
from proxy.memory.prompt.window import Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.recording.commit import ExchangeMeta, build_commit, pending_record
from proxy.memory.recording.recorder import Recorder
from proxy.settings import ProfileSettings
from tests.support.talk.parsing import parse
from tests.support.upstream.strict import Refused, validate

EACH = 10
"""Tokens of every message."""

REQUEST = parse(b'{"model":"m","messages":[]}')
TEMPLATE = "Told: {summary}\n=====\n{new_lines}"
NAME = re.compile(r"\b[uatpqs]\d+\b")

Meanwhile = Callable[[], Awaitable[None]]


def names_in(text: str) -> list[str]:
    return NAME.findall(text)


def new_names_in(text: str) -> list[str]:
    """Those that a request for a summary tells of first."""
    return names_in(text.partition("\n=====\n")[2])


def words(text: str) -> int:
    """Tokens of a text."""
    return len(text.split())


def read_name(body: bytes) -> object:
    """A message's JSON for one whose body is its name."""
    return {"content": body.decode()}


def profile_of(**fields: Any) -> ProfileSettings:
    """A profile with summaries and without recall."""
    summary = {"enabled": True, "model": "small", "prompt": TEMPLATE} | fields.pop("summary", {})
    known = {"summary": summary, "recall": {"enabled": False}}
    return ProfileSettings.model_validate(known | fields)


async def nothing() -> None:
    """Happens between a prompt and its reply."""


@dataclass
class View:
    """A prompt, and the session that it is a view of: what each of its messages came to."""

    before: Snapshot
    planned: PlannedRequest
    m: Sequence[ChatMessage]
    wrong: list[str] = field(default_factory=list)
    evicted: set[str] = field(default_factory=set)

    @property
    def prompt(self) -> Prompt:
        return self.planned.prompt

    @property
    def told(self) -> list[str]:
        return names_in(self.prompt.summary.text) if self.prompt.summary else []

    @property
    def shown(self) -> list[Entry]:
        return [piece for piece in self.prompt.pieces if not isinstance(piece, int)]

    @property
    def whole(self) -> list[Entry | int]:
        """The active log and the request, in the order of sending: what was not looked at first."""
        plan, said = self.planned.plan, {x.digest for x in self.m}
        seen = {piece.card.id for piece in plan.order if not isinstance(piece, int)}
        unseen = (e for e in self.before.log if e.card.id not in seen | plan.superseded)
        return [*(entry for entry in unseen if entry.card.digest not in said), *plan.order]

    def check(self) -> list[str]:
        """The names of all that is told, sent or rightly evicted, in order; ``wrong`` says what
        should not be."""
        shown, told = [entry.card.digest for entry in self.shown], self.told
        stored = [piece for piece in self.whole if not isinstance(piece, int)]
        self._none("told twice", [name for name in told if told.count(name) > 1])
        self._none("told and shown", set(told).intersection(shown))
        there = {entry.card.digest for entry in stored}.union(x.digest for x in self.m)
        self._none("told of what is gone", set(told) - there)
        missing = [e for e in stored if e.card.digest not in {*told, *shown} and not e.card.blank]
        self.evicted = {e.card.digest for e in missing if self._may_go(e)}
        lost = {entry.card.digest for entry in missing} - self.evicted
        self._none("lost", lost)
        self._refused()
        return [name for name in map(self._name, self.whole) if name not in lost]

    def _may_go(self, entry: Entry) -> bool:
        """Only where summarising has failed the window evicts what no summary tells, and with a
        call its results."""
        gone = entry.position < self.prompt.start or entry.card.answers is not None
        return self.before.stalled and gone

    def _refused(self) -> None:
        if _begins_in_a_loop(self.m):
            return  # as it would be without memory
        messages = [_message(self._card(piece)) for piece in self.prompt.pieces]
        try:
            validate({"model": "m", "messages": messages})
        except Refused as refused:
            self.wrong.append(f"refused: {refused}")

    def _card(self, piece: Entry | int) -> Any:
        return self.m[piece] if isinstance(piece, int) else piece.card

    def _name(self, piece: Entry | int) -> str:
        return str(self._card(piece).digest)

    def _none(self, fault: str, names: Sequence[str] | set[str]) -> None:
        if names:
            self.wrong.append(f"{fault}: {sorted(names)}")


def _begins_in_a_loop(m: Sequence[ChatMessage]) -> bool:
    """Are there results whose call the client has cut off, and that it has gone on from?"""
    first = next((n for n, x in enumerate(m) if x.role != "tool"), len(m))
    return 0 < first < len(m)


def _message(card: Any) -> dict[str, object]:
    message: dict[str, object] = {"role": card.role, "content": card.digest}
    if card.calls:
        named = {"name": "f", "arguments": "{}"}
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": named} for i in card.calls
        ]
    if card.answers:
        message["tool_call_id"] = card.answers
    return message


class Chronicle:
    """One session; ``meanwhile`` happens between each prompt and what is recorded of it."""

    def __init__(
        self,
        recorder: Recorder,
        key: SessionKey,
        profile: ProfileSettings,
        clock: Callable[[], float],
    ) -> None:
        self.recorder, self.key, self.profile, self.clock = recorder, key, profile, clock
        self.meanwhile: Meanwhile = nothing
        self.exchanges = 0

    @property
    def context(self) -> RequestContext:
        return RequestContext(
            self.key, NO_IDENTITY, ProfileRules.of(self.profile), fails_closed=False
        )

    @property
    def window(self) -> Window:
        return window_of(self.profile)

    async def look(self) -> Snapshot:
        """The session as the next request finds it, all of it."""
        rules = PromptRules(window=Window(), inject=False)
        options = LoadOptions(profile="", whole=True)
        return (await self.recorder.prepare(self.key, options, (), Intent(), rules)).snapshot

    async def say(
        self, m: Sequence[ChatMessage], answer: Choice, intent: Intent | None = None
    ) -> View:
        """One exchange; what the upstream was sent."""
        assert REQUEST is not None
        now, context = self.clock(), self.context
        rules = rules_of(REQUEST, context, lambda text: EACH)
        before = await self.look()
        intent = replace(intent or Intent(), now=now)
        options = load_options_of(context, rules)
        planned = (await self.recorder.prepare(self.key, options, m, intent, rules)).planned
        await self.meanwhile()
        self.exchanges += 1
        exchange = Exchange(
            id=f"x{self.exchanges}",
            profile="",
            started_at=now,
            created_at=now,
            incomplete=not answer.complete,
        )
        pending = pending_record(planned.plan, planned.prompt, m, planned.snapshot)
        meta = ExchangeMeta(exchange, work_requests=due_of(context, now))
        commit = build_commit(pending, [answer], meta, lambda raw: EACH)
        assert await self.recorder.record(self.key, commit) in ("recorded", "spooled")
        return View(before, planned, m)
