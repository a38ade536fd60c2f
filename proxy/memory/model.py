"""The values that memory is made of.  No I/O, no HTTP, no policy.

tenant -> user -> session -> exchange -> message.  History is the append-only list of messages of a
session; its *active* part, ordered by (turn, seq), is the log that memory is made from.

Message ids are ``{exchange}.{index}``, not sequence numbers: an exchange can be referred to, joined
and superseded before any store has given it a sequence number (it may still lie in the spool).

A session has one summary at a time, made progressively: the one before and what has been evicted
since give the next.  Every version is kept, so that a rewind behind what a summary covers falls
back to the newest version that does not cover it.

The queue is as durable as the store, and one for all processes: whoever claims a piece of work
holds it until it is finished, put off, or its lease has run out (the process was killed).  A piece
says where to look and not what to do: what there is to do is seen in the session itself, so that
doing it twice does no harm and asking once too often costs a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

State = Literal["active", "superseded"]
Origin = Literal["request", "response", "import"]
Status = Literal["applied", "empty", "off", "degraded"]
"""What memory did for a request."""

IDEMPOTENCY_SECONDS = 24 * 3600
"""How long an Idempotency-Key is remembered."""


class SessionKey(NamedTuple):
    """Whose conversation: ``tenant`` comes from the credential, ``session`` from the client."""

    tenant: str
    session: str


class Position(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A place in the log.  The log is sorted by it: late tool answers join their turn."""

    turn: int
    seq: int


LOG_START = Position(0, 0)


def message_id(exchange: str, index: int) -> str:
    return f"{exchange}.{index}"


def exchange_of(message: str) -> str:
    return message.rpartition(".")[0]


class Card(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """All that is known of a message but its place and its text; written once, never changed.

    ``digest`` is the canonical hash that equality means.  ``calls`` are the ids of the tool calls
    it makes, ``answers`` is the id of the call it answers (legacy: ``function:NAME``).
    ``evidence`` marks an answer that came from an upstream through us or from an import, or that
    took such an answer's place.  ``blank`` messages are history and never sent.
    ``choice`` is the index among the choices of a reply.  ``shape`` is the digest without the ids
    of calls, "" where there are none and for what older releases recorded.  ``told`` is above 0 for
    calls that were asked for as the answer: their tokens as the text that they are sent as where
    nobody has answered them.  ``words`` are the tokens of what is said beside other calls, which is
    all that is sent then.
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
    told: int = 0
    words: int = 0

    @property
    def exchange(self) -> str:
        return exchange_of(self.id)


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A card at its place in the log."""

    position: Position
    card: Card


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way into history.

    ``turn`` is the id of the message that its turn began with: its own id where it begins one.
    ``body`` is the JSON that a later request carries; ``wire`` is the JSON as it came where that
    differs (reasoning text and other extras that must not go back).
    """

    card: Card
    turn: str
    body: bytes
    wire: bytes | None = None
    state: State = "active"


class Recalled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that recall put into a prompt: where it stands and why it was taken, not its text.

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
NOTHING_SHOWN = msgspec.Raw(b"null")


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """What memory did for one exchange: counts and ids, never text.

    ``evicted_reason`` says what kept the newest of the evicted messages out.  ``recalled`` is a
    JSON list of ``Recalled``, ``tools`` one of the calls of memory that the model made, ``shown`` a
    ``proxy.memory.prompt.trace.PromptTrace``.  They are read by those few who ask: every open
    stream and every load has them.
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
    shown: msgspec.Raw = NOTHING_SHOWN

    def all_recalled(self) -> tuple[Recalled, ...]:
        return msgspec.json.decode(self.recalled, type=tuple[Recalled, ...])


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request and its reply; ``started_at`` orders attempts with one Idempotency-Key.

    ``usage`` is the upstream's, as JSON; ``model`` is what the reply says, ``asked`` what the
    request did.  ``size`` places in history are its own, reserved ones of choices included.
    ``follows`` is the message that stood last in the log before it, "" if none did, None if that is
    not known: it distinguishes branches of a conversation.  ``keyed``: it has an Idempotency-Key.
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
    asked: str | None = None
    follows: str | None = None
    keyed: bool = False


class WindowMove(msgspec.Struct, frozen=True, kw_only=True):
    """The window of a profile now starts at the message ``start``.

    Stores keep the later of this and what they have, so that a slow request cannot move the window
    back, except with ``anew`` (what was in the window was superseded).
    """

    profile: str
    start: str
    anew: bool = False


class SessionVersion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The session that an exchange was planned in: its newest exchange then, "" without any, and
    its count of ``changes``."""

    last: str
    changes: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> SessionVersion:
        return cls(snapshot.last.id if snapshot.last else "", snapshot.changes)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange, as it goes into history: all of it or nothing.  Only where it supersedes or
    activates thousands of messages a store does so before, in steps.

    ``drafts`` have the indexes 0 to ``len(drafts) - 1`` and become neighbours in history.
    ``reserved`` places follow them, for choices that are still streaming.  ``superseded`` and
    ``activated`` are message ids; ids that history does not know are ignored.  ``system`` is the
    JSON list of the request's leading system messages, None where it had none.  ``ttl``,
    seconds or 0 for ever, is for a session that begins with it.  ``alone``: it names what it goes
    on from, and nothing else that is said behind that stays before it.  ``seen``, but for None: it
    is not to be carried out where others have switched messages since, nor behind a newest exchange
    that it has not seen where it ``branches_off``, or where either of the two was broken off.
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
    due: tuple[Due, ...] = ()
    alone: bool = False
    seen: SessionVersion | None = None

    @property
    def branches_off(self) -> bool:
        """Is it on another branch than exchanges of other clients at the same time?  Also if it
        brings earlier conversation: another client may bring the same."""
        return bool(self.superseded or self.activated or self.alone or self._asks_after_answer)

    @property
    def _asks_after_answer(self) -> bool:
        """Does its request have a user message after an answer?"""
        roles = [draft.card.role for draft in self.drafts if draft.card.origin == "request"]
        return "assistant" in roles and "user" in roles[roles.index("assistant") :]


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """A message in another's place, under the same id; ``was`` is the wire JSON of that one."""

    card: Card
    body: bytes
    wire: bytes | None = None
    was: bytes


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """What came after choice 0 was complete: usage, and further choices at reserved indexes.

    ``edited`` is choice 0 where it went on all the same, in place of what was recorded of it.
    """

    exchange: str
    usage: bytes | None = None
    drafts: tuple[Draft, ...] = ()
    edited: Edited | None = None


Outcome = Literal["recorded", "duplicate", "stale", "outrun", "foreign", "erased", "outdated"]
"""What a commit did.  ``duplicate``: this exchange id is in history already.  ``stale``: another
exchange has followed the first attempt with this key.  ``outrun``: an attempt with this key that
started later is recorded, or, of one that was broken off, another that asks the same.  ``foreign``:
the session belongs to another user.  ``erased``: the session or its user was erased since the
exchange began.  ``outdated``: see Commit.  Only ``recorded`` changed anything."""


NO_PROFILE = "."
"""No profile is called so, and no window begins anywhere for it."""


class Ask(msgspec.Struct, frozen=True, gc=False):
    """What a request wants to see of a session.

    ``whole`` asks for the cards of the entire active log.  Without it the log begins at the stored
    window start of ``profile``, or, where there is none, far enough back that more than
    ``max_messages`` or ``max_tokens`` (None: no bound) are in it; whole turns either way, and the
    newest turn always.  Bodies come with exactly these entries.
    """

    profile: str
    whole: bool = False
    max_messages: int | None = None
    max_tokens: int | None = None
    idempotency_key: str | None = None
    uncovered: int | None = None
    """With summaries: the log begins earlier, at the first entry that no summary covers, but not
    farther back than is needed to have more than so many tokens in it."""


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """One consistent look at a session.  The default is a session that does not exist.

    ``log`` is sorted by position.  ``bodies`` maps message ids to JSON; with a whole log it covers
    the window only.  ``start`` is where the profile's window starts, None if never set.
    ``alternates`` are the inactive choices of replies, by exchange (whole log only).
    ``attempt`` is the exchange recorded under the asked idempotency key, ``last`` the newest one.
    ``messages`` and ``tokens`` count the whole active log.  ``changes`` counts how often a message
    was superseded, activated or edited.  ``stalled``: the last attempt to summarise has failed.
    ``began`` (Unix seconds) distinguishes it from a later session of the same id.
    ``lost`` counts messages that should be in sight and that the store has not any more.
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
    began: float = 0.0
    lost: int = 0

    @property
    def idle(self) -> Iterator[Entry]:
        """The inactive choices of all replies."""
        return chain.from_iterable(self.alternates.values())

    @property
    def end(self) -> Position:
        return self.log[-1].position if self.log else LOG_START


MAX_VERSIONS = 100
"""Versions that are kept; of more, the oldest go."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of the active log before ``until``, as far as ``seen`` (a seq).

    What joins an old turn later, an answer to a call of long ago, has a seq above ``seen`` and is
    not covered.  ``covers_until`` is the seq of the last message covered, 0 if none.  ``tokens``
    are those of the text.  ``edited``: by a person.  ``model`` wrote it.  Times are Unix seconds.
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


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange asks for work on its session: due ``at``, and until it has been asked for
    ``after`` times only at ``later``, which moves with each time.  ``profile`` says how to do it.

    Times are Unix seconds.
    """

    kind: Kind
    profile: str
    at: float
    after: int = 1
    later: float = 0.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work as it lies in the queue: one for each session and kind.

    ``asked``: how often since it was last finished.  ``attempts`` have failed.  ``lease`` is a
    token of the claim that holds it, "" while nobody does.
    """

    tenant: str
    session: str
    kind: Kind
    profile: str
    due: float
    asked: int = 1
    attempts: int = 0
    lease: str = ""
