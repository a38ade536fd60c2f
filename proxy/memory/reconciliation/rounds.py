"""The results of one round of calls, in the order of a request.  Pure.

Results come as they are done, and a client may resend them in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry

Places = dict[str, int]
"""Where M has the results of a round: by digest, by the call, and by what is in them alone."""


def reorder_results(log: Sequence[Entry], m: Sequence[ChatMessage]) -> Sequence[Entry]:
    """The log with results that stand side by side in M's order, those that M leaves out last; the
    same log where they are so already."""
    rounds = _rounds(m)
    if not rounds:
        return log
    reordered: list[Entry] = []
    places: Places = {}
    for results, group in groupby(log, _is_result):
        entries = list(group)
        if results:
            entries.sort(key=lambda entry: _place(entry.card, places))
        else:
            card = entries[-1].card
            places = rounds.get(card.digest) or rounds.get(card.shape) or {}
        reordered += entries
    return log if reordered == list(log) else reordered


def skips_stored_results(
    matched: AbstractSet[int], log: Sequence[Entry], m: Sequence[ChatMessage]
) -> bool:
    """Whether M has results that are in the log but not matched by the alignment."""
    left = (x for i, x in enumerate(m) if x.answers is not None and i not in matched)
    marks = {mark for x in left for mark in (x.digest, x.answers, x.shape)}
    if not marks:
        return False
    cards = (entry.card for entry in log if _is_result(entry))
    return any(not marks.isdisjoint((x.digest, x.answers, x.shape)) for x in cards)


def _is_result(entry: Entry) -> bool:
    return entry.card.answers is not None


def _rounds(m: Sequence[ChatMessage]) -> Mapping[str, Places]:
    """By the calls: by their digest, and by what is in them but for their ids.  Those whose calls M
    leaves out are the first."""
    places: Places = {}
    rounds = {"": places}
    for i, x in enumerate(m):
        if x.answers is not None:
            places |= dict.fromkeys((x.digest, x.answers, x.shape), i)
        elif x.calls:
            places = {}
            rounds |= dict.fromkeys((x.digest, x.shape), places)
    return rounds if len(rounds) > 1 or rounds[""] else {}


def _place(card: Card, places: Mapping[str, int]) -> float:
    marks = (card.digest, card.answers or "", card.shape)
    return next((places[mark] for mark in marks if mark in places), float("inf"))
