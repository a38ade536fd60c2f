"""Adapts a commit to a session that other requests changed since it was planned.  Pure.

Concurrent requests that only append are recorded one after the other.  If one of them rewinds or
switches, that would leave a log that is no client's conversation: then the branch recorded last is
the log, and exchanges that it had not seen become a branch in history.

An exchange that was broken off and its immediate retry may be recorded in either order.  The log
has the retry.

Concurrent requests may each bring the same earlier conversation to a session that lacks it.  The
log has it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from msgspec.structs import replace

from proxy.memory.archive import PlacedExchange, StoredMessage
from proxy.memory.history.branches import NO_SWITCH, switch_to
from proxy.memory.model import Commit, Draft, Position, Snapshot, WindowMove
from proxy.memory.reconciliation.align import is_alike

MAX_COMPARED = 64
"""Positions of the log, oldest first, that are compared with the start of a commit at most."""


def rebase_commit(
    commit: Commit,
    found: Snapshot,
    lines: Sequence[StoredMessage],
    exchanges: Sequence[PlacedExchange],
) -> Commit:
    """The commit, adapted; ``found`` is the newest turn of the session now, ``lines`` and
    ``exchanges`` are all that it has, ascending."""
    commit = _with_branch_restored(commit, lines, exchanges)
    gone = set(commit.superseded)
    left_behind = _left_behind(commit, lines, _unseen(commit, exchanges))
    more = (message for message in left_behind if message not in gone)
    commit = replace(commit, superseded=(*commit.superseded, *more))
    return without_repeated_log(replacing_broken_off(commit, found), lines)


def is_outlived(commit: Commit, found: Snapshot) -> bool:
    """Whether the commit's exchange was broken off and a later one with the same request is
    recorded.  Never with an Idempotency-Key, by which a client may still fetch it."""
    last, exchange = found.last, commit.exchange
    if last is None or not exchange.incomplete or commit.idempotency_key is not None:
        return False
    return last.started_at > exchange.started_at and bool(_same_question_ids(commit, found))


def replacing_broken_off(commit: Commit, found: Snapshot) -> Commit:
    """The commit; it also supersedes the newest exchange if that was broken off and asks the
    same."""
    if found.last is None or not found.last.incomplete:
        return commit
    gone = _same_question_ids(commit, found)
    return replace(commit, superseded=_extend_ids(commit.superseded, gone, commit.activated))


def _same_question_ids(commit: Commit, found: Snapshot) -> Sequence[str]:
    """Ids of the newest exchange's messages if it asks the same after the same message, else
    none."""
    last = found.last
    if last is None or last.follows != commit.exchange.follows:
        return ()
    log = sorted(found.log, key=lambda entry: entry.position.seq)
    own = [entry.card for entry in log if entry.card.exchange == last.id]
    asked = [draft.card.digest for draft in commit.drafts if draft.card.origin == "request"]
    same = bool(asked) and asked == [card.digest for card in own if card.origin == "request"]
    return [card.id for card in own] if same else ()


def _with_branch_restored(
    commit: Commit, lines: Sequence[StoredMessage], exchanges: Sequence[PlacedExchange]
) -> Commit:
    """The commit; it also activates the message that it follows if another branch replaced that.
    If nothing replaced it, a person removed it, and it stays superseded."""
    follows = commit.exchange.follows or ""
    away = {line.card.id for line in lines if line.state != "active"}
    if follows not in away and not commit.activated:
        return commit
    switch = switch_to(lines, exchanges, follows, whole=False) or NO_SWITCH
    if not switch.superseded:
        return commit
    return replace(
        commit,
        superseded=_extend_ids(commit.superseded, switch.superseded, commit.activated),
        activated=_extend_ids(commit.activated, switch.activated, commit.superseded),
    )


def _extend_ids(
    ids: Sequence[str], others: Iterable[str], without: Sequence[str]
) -> tuple[str, ...]:
    known = {*ids, *without}
    return (*ids, *(id for id in others if id not in known))


def _unseen(commit: Commit, exchanges: Sequence[PlacedExchange]) -> Sequence[PlacedExchange]:
    """The exchanges recorded after the commit was planned.  If a server lost the newest exchange
    that it was planned with: those recorded since it began."""
    last = commit.planned_for.last_exchange if commit.planned_for else ""
    ids = [placed.exchange.id for placed in exchanges]
    if last in ids:
        return exchanges[ids.index(last) + 1 :]
    began = commit.exchange.started_at
    return [placed for placed in exchanges if not last or placed.exchange.created_at > began]


def _left_behind(
    commit: Commit, lines: Sequence[StoredMessage], unseen: Sequence[PlacedExchange]
) -> Iterator[str]:
    """Ids of messages that would stay in the log on another branch: their exchanges follow a
    message that left the log, or the same message as the commit if one of the two supersedes
    something or the commit ``supersedes_siblings``."""
    if not commit.branches_off:
        return
    there = {line.card.id for line in lines}
    active = {line.card.id for line in lines if line.state == "active"}
    raced = not active.issuperset(there.intersection(commit.superseded))
    active = (active - set(commit.superseded)).union(commit.activated)
    for placed in unseen:
        follows = placed.exchange.follows
        beside = (raced or commit.supersedes_siblings) and follows == commit.exchange.follows
        if beside or (follows in there and follows not in active):
            own = active.intersection(placed.messages)
            active -= own
            yield from sorted(own)


def without_repeated_log(commit: Commit, lines: Sequence[StoredMessage]) -> Commit:
    """The commit without the earlier conversation that another request has recorded meanwhile: it
    follows that copy, and its own copy is in history only."""
    there = _common_run(commit.drafts, _log_after_parent(commit, lines))
    brought, rest = commit.drafts[: len(there)], commit.drafts[len(there) :]
    ids = {draft.card.id for draft in brought}
    if not there or any(draft.turn in ids for draft in rest):
        return commit
    moves = commit.window is not None and commit.window.start not in ids
    return replace(
        commit,
        exchange=replace(commit.exchange, follows=there[-1].card.id),
        drafts=(*map(_history_only, brought), *rest),
        window=commit.window if moves else None,
    )


def _log_after_parent(commit: Commit, lines: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """The log after the message that the commit follows, without what the commit supersedes."""
    gone = set(commit.superseded)
    log = [line for line in lines if line.state == "active" and line.card.id not in gone]
    log.sort(key=lambda line: line.position)
    follows = commit.exchange.follows
    ids = [line.card.id for line in log]
    if follows and follows not in ids:
        return ()
    return log[ids.index(follows) + 1 :] if follows else log


def _common_run(drafts: Sequence[Draft], there: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
    """The longest run of lines in ``there`` that equals the first drafts."""
    begun = (n for n, line in enumerate(there) if drafts and is_alike(drafts[0].card, line.card))
    found = (there[n : n + _common_length(drafts, there, n)] for n in islice(begun, MAX_COMPARED))
    return max(found, key=len, default=())


def _common_length(drafts: Sequence[Draft], there: Sequence[StoredMessage], begin: int) -> int:
    """The length of the equal run from ``begin`` on, up to the last answer after which the drafts
    have a question."""
    pairs = zip(drafts, islice(there, begin, None), strict=False)
    same = takewhile(lambda pair: is_alike(pair[0].card, pair[1].card), pairs)
    ends = (n for n, _ in enumerate(same, 1) if _is_answer_then_question(drafts[n - 1 : n + 1]))
    return max(ends, default=0)


def _is_answer_then_question(two: Sequence[Draft]) -> bool:
    return [draft.card.role for draft in two] == ["assistant", "user"]


def _history_only(draft: Draft) -> Draft:
    """The draft as blank and superseded, so in history only.  It stays out of the log even if its
    exchange is activated: the other copy is activated then too."""
    return replace(draft, card=replace(draft.card, blank=True, tokens=0), state="superseded")


def with_window_moved_back(
    commit: Commit, before: Sequence[str], lines: Sequence[StoredMessage], start: Position | None
) -> Commit:
    """The commit; it moves the window back if it activates messages, other than those ``before``
    it was adapted, that stand before the window's ``start``."""
    back = set(commit.activated).difference(before)
    first = min((x.position, x.card.id) for x in lines if x.card.id in back) if back else None
    if start is None or first is None or start <= first[0]:
        return commit
    window = WindowMove(profile=commit.exchange.profile, start=first[1], may_move_back=True)
    return replace(commit, window=window)
