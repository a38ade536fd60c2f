"""A conversation that goes on from another one, which stays as it is.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from proxy.memory.archive import Archived, Line, Placed
from proxy.memory.branches import NO_SWITCH, Switch, switch_to
from proxy.memory.model import BEGINNING, Position, State
from proxy.memory.summary import Summary


class NoMessage(LookupError):
    """There is no such message in this session."""


@dataclass(frozen=True, slots=True)
class Fork:
    """What a fork is to be: its id, when it was made (Unix seconds), and up to which message it
    goes, None for all.  Without a ``title`` of its own it has that of what it comes from."""

    id: str
    at: float
    until: str | None = None
    title: str | None = None


def forked(archived: Archived, fork: Fork) -> Archived:
    """The new session: everything that was recorded up to and including the message.

    Ids, places, times, exchanges, windows and owner are the same.  The branch that leads to the
    message is the active one.  Versions of the summary that cover anything left out are left out.
    Raises NoMessage.
    """
    lines, exchanges = _until(archived, fork.until)
    end = max((placed.first + placed.exchange.size - 1 for placed in exchanges), default=0)
    if fork.until is None:
        end = archived.session.end
    left_out = archived.lines[len(lines) :]
    switch = _switch(lines, exchanges, fork.until)
    lines = tuple(_switched(line, switch) for line in lines)
    last = max((line.position for line in lines if line.state == "active"), default=BEGINNING)
    summaries = tuple(
        structs.replace(summary, seen=min(summary.seen, end))
        for summary in archived.summaries
        if _stands(summary, left_out, archived.lines, switch)
    )
    session, details = archived.session, archived.session.details
    return Archived(
        session=replace(
            session,
            id=fork.id,
            messages=sum(line.state == "active" for line in lines),
            tokens=sum(line.card.tokens for line in lines if line.state == "active"),
            created_at=fork.at,
            last_active_at=fork.at,
            details=details if fork.title is None else replace(details, title=fork.title),
            summary=summaries[0] if summaries else None,
            end=end,
            last=exchanges[-1].exchange.id if exchanges else None,
            windows=_windows(archived, switch, last),
        ),
        lines=lines,
        exchanges=exchanges,
        summaries=summaries,
    )


def _until(archived: Archived, until: str | None) -> tuple[tuple[Line, ...], tuple[Placed, ...]]:
    """The messages up to this one by seq, and their exchanges with what is left of them."""
    if until is None:
        return archived.lines, archived.exchanges
    cut = next((x.position.seq for x in archived.lines if x.card.id == until), None)
    if cut is None:
        raise NoMessage
    lines = tuple(x for x in archived.lines if x.position.seq <= cut)
    there = {line.card.id for line in lines}
    placed = (
        each._replace(messages=tuple(id for id in each.messages if id in there))
        for each in archived.exchanges
    )
    return lines, tuple(each for each in placed if each.messages)


def _switch(lines: Sequence[Line], exchanges: Sequence[Placed], until: str | None) -> Switch:
    if until is None:
        return NO_SWITCH
    return switch_to(lines, exchanges, until, whole=False) or NO_SWITCH


def _switched(line: Line, switch: Switch) -> Line:
    state: State = line.state
    if line.card.id in switch.activated:
        state = "active"
    elif line.card.id in switch.superseded:
        state = "superseded"
    return line if state == line.state else line._replace(state=state)


def _stands(
    summary: Summary, left_out: Sequence[Line], lines: Sequence[Line], switch: Switch
) -> bool:
    """Does it cover nothing that is not there, or is there in another state?"""
    changed = {*switch.activated, *switch.superseded}
    touched = (*left_out, *(line for line in lines if line.card.id in changed))
    return not any(summary.covers(line.position) for line in touched)


def _windows(archived: Archived, switch: Switch, last: Position) -> dict[str, Position]:
    """Where windows start that start within what is there; the others are found anew."""
    if switch != NO_SWITCH:
        return {}
    windows = archived.session.windows
    return {profile: start for profile, start in windows.items() if start <= last}
