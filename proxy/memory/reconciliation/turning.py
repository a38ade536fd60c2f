"""A log that is turned to another branch, by a request that goes on from there.  Pure.

The request is planned as if it had been turned already.  It is turned when the exchange is
recorded: a request that is not answered takes nothing back.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.memory.model import Entry, Snapshot
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import Plan


def turned(snapshot: Snapshot, intent: Intent) -> Snapshot:
    """The session as the request goes on from it."""
    return replace(snapshot, log=intent.way) if intent.way else snapshot


def turning(plan: Plan, log: Sequence[Entry], way: Sequence[Entry]) -> Plan:
    """A plan for the ``way``, with what the ``log`` has beside it gone and what it lacks back."""
    active, kept = ({entry.card.id for entry in entries} for entries in (log, way))
    stays = active | plan.superseded
    back = [entry.card.id for entry in way if entry.card.id not in stays]
    gone = plan.superseded | (active - kept)
    return replace(plan, superseded=gone, activated=(*back, *plan.activated))
