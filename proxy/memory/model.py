"""The values that memory is made of.  No I/O, no HTTP, no policy.

tenant -> user -> session -> exchange -> message.  History is the append-only list of messages of a
session; its *active* part, ordered by (turn, seq), is the log that memory is made from.

Message ids are ``{exchange}.{index}``, not sequence numbers: an exchange can be referred to, joined
and superseded before a store has given it sequence numbers (it may still be in the spool).

A session has one current summary, written progressively from the previous one and what has been
evicted since.  Versions are stored, so that after a rewind to before the end of what a summary
covers, the newest version that does not cover anything taken back is current.

The queue is as durable as the store and shared by all processes.  A process that claims a piece of
work holds it until it is finished, put off, or its lease expires (the process was killed).  A piece
of work names a session, not an action: the session itself shows what is to be done, so that doing
it twice is harmless and a superfluous request costs one read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

State = Literal["active", "superseded"]
Origin = Literal["request", "response", "import"]
Status = Literal["applied", "empty", "off", "degraded"]
"""The result of memory for a request, as X-Memory-Status reports it."""

IDEMPOTENCY_SECONDS = 24 * 3600
"""How long an Idempotency-Key is remembered."""


class SessionKey(NamedTuple):
    """Identifies a session: ``tenant`` comes from the credential, ``session`` from the client."""

    tenant: str
    session: str


class Position(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A place in the log, which is sorted by it: late tool results join their turn."""

    turn: int
    seq: int


LOG_START = Position(0, 0)


def message_id(exchange: str, index: int) -> str:
    return f"{exchange}.{index}"


def exchange_of(message: str) -> str:
    return message.rpartition(".")[0]


class Card(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """A message without its position and text; written once, never changed.

    ``digest`` is the canonical hash by which messages are equal.  ``calls`` are the ids of the tool
    calls in it, ``answers`` is the id of the call that it answers (legacy: ``function:NAME``).
    ``evidence`` marks an answer that came from an upstream through the proxy or from an import, or
    that replaced such an answer.  ``blank`` messages are history only and never sent.
    ``choice`` is the index among the choices of a reply.  ``shape`` is the digest without the ids
    of calls, "" without calls and for records of older releases.
    Unanswered calls are sent as text.  ``call_text_tokens`` are the tokens of that text for calls
    that are themselves the answer (structured output), else 0.  For other calls only the text
    beside them is sent, which has ``side_text_tokens``.
    """

    id: str
    role: str
    tokens: int
    digest: str
    calls: tuple[str, ...] = ()
    answers: str | None = None
    origin: Origin = "request"
    evidence: bool = False
    incomplete: bool = False
    blank: bool = False
    choice: int = 0
    created_at: float = 0.0
    shape: str = ""
    call_text_tokens: int = 0
    side_text_tokens: int = 0

    @property
    def exchange(self) -> str:
        return exchange_of(self.id)


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A card and its position in the log."""

    position: Position
    card: Card


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is to be added to history.

    ``turn`` is the id of the first message of its turn, which may be itself.  ``body`` is the JSON
    that later requests carry; ``wire`` is the original JSON if that differs (reasoning text and
    other extras that must not be sent back).
    """

    card: Card
    turn: str
    body: bytes
    wire: bytes | None = None
    state: State = "active"


class Recalled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that recall put into a prompt: its position and scores, not its text.

    ``kind`` is "passage", "instruction" or "preference".  ``parts`` are what ``score`` is made of,
    ``flags`` are recall's own.
    """

    kind: str
    message: str
    session: str
    seq: int
    tokens: int
    score: float = 0.0
    parts: Mapping[str, float] = {}
    flags: int = 0


NOTHING_RECALLED = msgspec.Raw(b"[]")
NO_TRACE = msgspec.Raw(b"null")


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """What memory did for one exchange: counts and ids, never text.

    ``evicted_reason`` says why the newest evicted message was left out.  ``recalled`` is a JSON
    list of ``Recalled``, ``tools`` a list of the memory tools that the model called, ``trace`` a
    ``proxy.memory.prompt.trace.PromptTrace``.  They stay encoded, as every open stream and load has
    them and few need them.
    """

    status: str = "empty"
    reason: str | None = None
    messages: int = 0
    tokens: int = 0
    evicted_messages: int = 0
    evicted_tokens: int = 0
    evicted_reason: str | None = None
    duration_ms: float = 0.0
    recalled: msgspec.Raw = NOTHING_RECALLED
    tools: msgspec.Raw = NOTHING_RECALLED
    trace: msgspec.Raw = msgspec.field(name="shown", default=NO_TRACE)

    def all_recalled(self) -> tuple[Recalled, ...]:
        return msgspec.json.decode(self.recalled, type=tuple[Recalled, ...])


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request and its reply; ``started_at`` orders attempts with one Idempotency-Key.

    ``usage`` is the upstream's, as JSON; ``model`` is that of the reply, ``requested_model`` that
    of the request.  ``size`` is the number of its seqs in history, with those reserved for choices.
    ``follows`` is the last message of the log before it, "" if there was none, None if unknown: it
    distinguishes branches of a conversation.
    """

    id: str
    profile: str
    started_at: float
    created_at: float
    model: str | None = None
    status: int = 200
    incomplete: bool = False
    finish_reason: str | None = None
    usage: bytes | None = None
    memory: Injection = Injection()
    size: int = 0
    requested_model: str | None = msgspec.field(name="asked", default=None)
    follows: str | None = None
    has_idempotency_key: bool = msgspec.field(name="keyed", default=False)


class WindowMove(msgspec.Struct, frozen=True, kw_only=True):
    """The window of a profile now starts at the message ``start``.

    Stores take the later of this and the stored start, so that a slow request cannot move the
    window back, except with ``may_move_back`` (messages in the window were superseded).
    """

    profile: str
    start: str
    may_move_back: bool = msgspec.field(name="anew", default=False)


class SessionVersion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of the session that an exchange was planned for: the id of the newest exchange, ""
    without any, and the count of ``changes``."""

    last_exchange: str
    changes: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> SessionVersion:
        return cls(snapshot.last.id if snapshot.last else "", snapshot.changes)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange to be recorded, all of it or nothing.  Only if it supersedes or activates
    thousands of messages, a store does that before, in steps.

    ``drafts`` have the indexes 0 to ``len(drafts) - 1`` and become neighbours in history.
    ``reserved`` seqs follow them, for choices that are still streaming.  ``superseded`` and
    ``activated`` are message ids; unknown ids are ignored.  ``system`` is the JSON list of the
    request's leading system messages, None if it had none.  ``ttl`` (seconds, 0 for ever) is for a
    session that begins with it.  ``supersedes_siblings``: it names the message that it continues,
    and no others after that message stay in the log.  ``planned_for``, unless None, is a condition:
    the commit is "outdated" if others have switched messages since, or if there is a newer exchange
    and this one ``branches_off`` or either was broken off.
    """

    exchange: Exchange
    user: str | None = None
    drafts: tuple[Draft, ...] = ()
    reserved: int = 0
    superseded: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()
    system: bytes | None = None
    system_tokens: int = 0
    window: WindowMove | None = None
    idempotency_key: str | None = None
    ttl: int = 0
    work_requests: tuple[WorkRequest, ...] = msgspec.field(name="due", default=())
    supersedes_siblings: bool = msgspec.field(name="alone", default=False)
    planned_for: SessionVersion | None = msgspec.field(name="seen", default=None)

    @property
    def branches_off(self) -> bool:
        """Whether it is on another branch than concurrent exchanges; also true if it brings earlier
        messages, as another client may bring the same."""
        return bool(
            self.superseded or self.activated or self.supersedes_siblings or self._asks_after_answer
        )

    @property
    def _asks_after_answer(self) -> bool:
        """Whether its request has a user message after an answer."""
        roles = [draft.card.role for draft in self.drafts if draft.card.origin == "request"]
        return "assistant" in roles and "user" in roles[roles.index("assistant") :]


class MessageEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A new content for a message with the same id; ``replaced_wire`` is the wire JSON until
    then."""

    card: Card
    body: bytes
    wire: bytes | None = None
    replaced_wire: bytes = msgspec.field(name="was")


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply brought after choice 0 was recorded: usage, and choices at reserved indexes.

    ``edited`` is choice 0 if it continued nevertheless; it replaces what was recorded of it.
    """

    exchange: str
    usage: bytes | None = None
    drafts: tuple[Draft, ...] = ()
    edited: MessageEdit | None = None


Outcome = Literal["recorded", "duplicate", "stale", "outrun", "foreign", "erased", "outdated"]
"""What a commit did.  ``duplicate``: this exchange id is in history already.  ``stale``: another
exchange has followed the first attempt with this key.  ``outrun``: an attempt with this key that
started later is recorded, or, of one that was broken off, another that asks the same.  ``foreign``:
the session belongs to another user.  ``erased``: the session or its user was erased since the
exchange began.  ``outdated``: see Commit.  Only ``recorded`` changed anything."""


NO_PROFILE = "."
"""Stands for no profile; none has this name, so that it has no window start."""


class LoadOptions(msgspec.Struct, frozen=True, gc=False):
    """Which part of a session is to be loaded.

    ``whole``: the cards of the entire active log.  Else the log begins at the stored window start
    of ``profile``; without one, far enough back that it has more than ``max_messages`` or
    ``max_tokens`` (None: no bound).  It always has whole turns, and the newest turn.  The bodies
    are those of the entries from there on.
    """

    profile: str
    whole: bool = False
    max_messages: int | None = None
    max_tokens: int | None = None
    idempotency_key: str | None = None
    max_uncovered_tokens: int | None = None
    """With summaries: the log begins earlier, at the first entry that the summary does not cover,
    but not further back than needed for more than so many tokens."""


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """A session as it was at one moment.  The default is a session that does not exist.

    ``log`` is sorted by position.  ``bodies`` maps message ids to JSON; with a whole log it covers
    the window only.  ``start`` is where the profile's window starts, None if never set.
    ``alternates`` are the inactive choices of replies, by exchange (whole log only).
    ``attempt`` is the exchange with the requested idempotency key, ``last`` the newest exchange.
    ``messages`` and ``tokens`` count the whole active log.  ``changes`` counts how often a message
    was superseded, activated or edited.  ``stalled``: the last attempt to summarise failed.
    ``created_at`` (Unix seconds) distinguishes it from a later session with the same id.
    ``missing_messages`` counts those that should be in ``log`` and are not in the store.
    """

    exists: bool = False
    owner: str | None = None
    system: bytes | None = None
    system_tokens: int = 0
    start: Position | None = None
    log: tuple[Entry, ...] = ()
    whole: bool = True
    bodies: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    alternates: Mapping[str, tuple[Entry, ...]] = msgspec.field(default_factory=dict)
    last: Exchange | None = None
    attempt: Exchange | None = None
    messages: int = 0
    tokens: int = 0
    summary: Summary | None = None
    changes: int = 0
    stalled: bool = False
    created_at: float = 0.0
    missing_messages: int = 0

    @property
    def inactive_choices(self) -> Iterator[Entry]:
        return chain.from_iterable(self.alternates.values())

    @property
    def end(self) -> Position:
        return self.log[-1].position if self.log else LOG_START


MAX_VERSIONS = 100
"""Versions of a summary; of more, the oldest are deleted."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of the active log before the position ``until``, up to the seq ``seen``.

    A message that joins an old turn later, such as a late tool result, has a higher seq and is not
    covered.  ``covers_until`` is the seq of the last message covered, 0 if none.  ``tokens`` are
    those of the text.  ``edited``: by a person.  ``model`` wrote it.  Times are Unix seconds.
    """

    text: str
    version: int
    until: Position = LOG_START
    seen: int = 0
    covers_until: int = 0
    tokens: int = 0
    edited: bool = False
    model: str | None = None
    created_at: float = 0.0

    def covers(self, position: Position) -> bool:
        return position < self.until and position.seq <= self.seen


Kind = Literal["summary", "rebuild", "learning"]


class WorkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for work on a session; ``profile`` has the settings for it.  Times are Unix
    seconds.

    The work is due at ``due_at`` once it was requested ``min_requests`` times.  Until then it is
    due at ``due_if_fewer``, which each further request replaces.
    """

    kind: Kind
    profile: str
    due_at: float = msgspec.field(name="at")
    min_requests: int = msgspec.field(name="after", default=1)
    due_if_fewer: float = msgspec.field(name="later", default=0.0)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work in the queue: one for each session and kind.

    ``requests``: how often it was requested since it was last finished.  ``attempts``: the number
    of failures.  ``lease`` is the token of the claim that holds it, "" if unclaimed.
    """

    tenant: str
    session: str
    kind: Kind
    profile: str
    due: float
    requests: int = msgspec.field(name="asked", default=1)
    attempts: int = 0
    lease: str = ""

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.tenant, self.session)
