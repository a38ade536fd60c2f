"""Composing the prompt: ``[system] [window] [the client's messages]``.  Pure.

The client's own messages keep their order and their bytes; stored messages are put between them
where the plan says, as far as the window shows them and a strict upstream accepts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from proxy.memory.model import BEGINNING, Card, Entry, Position, Snapshot
from proxy.memory.reconcile import Plan
from proxy.memory.request import Incoming
from proxy.memory.validity import valid
from proxy.memory.window import Size, Window, advance, view


@dataclass(frozen=True, slots=True)
class Rules:
    """How to compose for one request.

    ``system`` says that the remembered system message goes in (the request has none of its own).
    ``cap`` is a bound on all injected tokens of this request alone; ``hard``: even the remembered
    system message is left out rather than pass it.  ``inject = False`` adds nothing at all.
    """

    window: Window
    system: bool = True
    cap: int | None = None
    hard: bool = True
    inject: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: ``pieces`` are stored entries and indexes into the request's messages.

    ``start`` is where the profile's window starts from now on; it ``moved``, or was found ``anew``
    because what it showed was superseded.  ``injected`` counts stored messages, and the tokens of
    these and of the remembered system message; ``evicted`` what the window leaves out.
    """

    pieces: tuple[Entry | int, ...]
    system: bytes | None
    start: Position
    moved: bool
    anew: bool
    injected: Size
    evicted: Size

    @property
    def empty(self) -> bool:
        return self.system is None and self.injected.messages == 0

    def missing(self, bodies: Mapping[str, bytes]) -> list[str]:
        """Ids of the stored messages whose JSON is still to be fetched."""
        ids = [piece[1].id for piece in self.pieces if not isinstance(piece, int)]
        return [id for id in ids if id not in bodies]


@dataclass(frozen=True, slots=True)
class _Sent:
    piece: Entry | int
    role: str
    calls: tuple[str, ...]
    answers: str | None
    stored: bool


def compose(snapshot: Snapshot, plan: Plan, m: Sequence[Incoming], rules: Rules) -> Prompt:
    """The prompt for a plan; an entry whose body the snapshot lacks may be in it."""
    system = snapshot.system if rules.system and rules.inject else None
    system_tokens = snapshot.system_tokens if system else 0
    if system and rules.hard and rules.cap is not None and system_tokens > rules.cap:
        system, system_tokens = None, 0
    start, anew = _start(snapshot, plan, _beside(rules.window, system_tokens))
    shown = start
    if rules.cap is not None:
        narrow = rules.window.at_most(rules.cap - system_tokens)
        shown = advance(plan.log, start, narrow, plan.running)
    pieces = _pieces(plan, m, shown, inject=rules.inject)
    injected = _count(piece for piece in pieces if not isinstance(piece, int))
    return Prompt(
        pieces=pieces,
        system=system,
        start=start,
        moved=start != (snapshot.start or BEGINNING),
        anew=anew,
        injected=Size(injected.messages, injected.tokens + system_tokens),
        evicted=_evicted(snapshot, plan, shown),
    )


def render(prompt: Prompt, m: Sequence[bytes], bodies: Mapping[str, bytes]) -> list[bytes]:
    """The JSON of the messages of a prompt, without system messages; what has no body is not."""
    found = (m[x] if isinstance(x, int) else bodies.get(x[1].id) for x in prompt.pieces)
    return [message for message in found if message is not None]


def _beside(window: Window, tokens: int) -> Window:
    """What is left of a token window beside the remembered system message."""
    if window.max_tokens is None or not tokens:
        return window
    return replace(window, max_tokens=max(0, window.max_tokens - tokens))


def _start(snapshot: Snapshot, plan: Plan, window: Window) -> tuple[Position, bool]:
    old = snapshot.start or BEGINNING
    anew = False
    if snapshot.start is not None and plan.superseded:
        gone = plan.superseded
        anew = any(e.position < old for e in snapshot.log if e.card.id in gone)
    start = BEGINNING if anew else old
    return advance(plan.log, start, window, plan.running), anew


def _pieces(
    plan: Plan, m: Sequence[Incoming], start: Position, *, inject: bool
) -> tuple[Entry | int, ...]:
    """What is sent, in order; one look at each entry, for this is done for every request."""
    running, tools = plan.running, False
    pieces: list[Entry | int] = []
    for piece in plan.order:
        if isinstance(piece, int):
            said: Incoming | Card = m[piece]
        elif inject and (piece[0] >= start or piece[0][0] == running) and not piece[1].blank:
            said = piece[1]
        else:
            continue
        pieces.append(piece)
        tools = tools or bool(said.calls) or said.answers is not None
    if not tools:
        return tuple(pieces)  # every order of such messages is valid
    return tuple(x.piece for x in valid([_sent(piece, m) for piece in pieces]))


def _sent(piece: Entry | int, m: Sequence[Incoming]) -> _Sent:
    if isinstance(piece, int):
        said = m[piece]
        return _Sent(piece, said.role, said.calls, said.answers, stored=False)
    card = piece.card
    return _Sent(piece, card.role, card.calls, card.answers, stored=True)


def _count(entries: Iterable[Entry]) -> Size:
    tokens = [card.tokens for _, card in entries]
    return Size(len(tokens), sum(tokens))


def _evicted(snapshot: Snapshot, plan: Plan, start: Position) -> Size:
    gone = Size(0, 0)
    if plan.superseded:
        gone = _count(e for e in snapshot.log if e.card.id in plan.superseded)
    shown = _count(view(plan.log, start, plan.running))
    messages = snapshot.messages - gone.messages - shown.messages
    return Size(max(0, messages), max(0, snapshot.tokens - gone.tokens - shown.tokens))
