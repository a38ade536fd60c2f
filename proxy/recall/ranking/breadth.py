"""Reorders the ranking for questions that ask for all of something: breadth over sessions.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.recall.ranking.score import Ranked

BEST_FIRST = 800
"""Tokens of the best passages that keep their order: in a small budget breadth costs evidence."""

MIN_SCORE_SHARE = 0.3
"""A session's best passage is preferred only with at least this share of the best score."""


def diversify_sessions(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The best passages, then one of each session without one so far, then the others."""
    best, firsts, others = list[Ranked](), list[Ranked](), list[Ranked]()
    sessions: set[int] = set()
    used = 0
    for each in ranked:
        if used < BEST_FIRST:
            best.append(each)
            used += each.tokens
        elif each.session not in sessions and each.score >= MIN_SCORE_SHARE * ranked[0].score:
            firsts.append(each)
        else:
            others.append(each)
        sessions.add(each.session)
    return best + firsts + others
