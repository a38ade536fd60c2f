"""A question for all there are of something needs many sessions, not much of one.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.recall.ranking.score import Ranked

BEST_FIRST = 800
"""Tokens of the best passages, whatever their sessions: in little room breadth costs evidence."""

WORTH = 0.3
"""The least share of the best score that a session's best passage must have to come before others.
"""


def broadly(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Behind the best passages first one of each session that has not had any, then the others."""
    best, firsts, others = list[Ranked](), list[Ranked](), list[Ranked]()
    sessions: set[int] = set()
    used = 0
    for each in ranked:
        if used < BEST_FIRST:
            best.append(each)
            used += each.tokens
        elif each.session not in sessions and each.score >= WORTH * ranked[0].score:
            firsts.append(each)
        else:
            others.append(each)
        sessions.add(each.session)
    return best + firsts + others
