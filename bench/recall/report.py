"""The result: a Markdown table for people, and one line of JSON for programs.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import fmean, median, quantiles
from typing import Any

from bench.recall.drive import Asked
from bench.recall.people import Collection

APART = frozenset({"standing", "instruction_following", "preference_following", "event_ordering"})
"""Kinds of questions that do not point at their evidence: shown, and left out of the mean."""

QUIET = "small talk"
"""The name of the row of messages at which nothing is to be recalled."""


def summary(collection: Collection, store: str, asked: Sequence[Asked]) -> dict[str, Any]:
    """All figures: recall is the mean over questions, 0 to 1."""
    budgets = sorted({one.budget for one in asked})
    pointed = [one for one in asked if _points(one)]
    return {
        "dataset": collection.dataset,
        "data": collection.name,
        "store": store,
        "people": len(collection.people),
        "exchanges": collection.exchanges,
        "questions": collection.questions,
        "labels": collection.repairs._asdict(),
        **{f"recall@{budget}": _mean(pointed, budget) for budget in budgets},
        **{
            f"{kind}@{budget}": _mean(_of_kind(asked, kind), budget)
            for kind in _kinds(asked)
            for budget in budgets
        },
        **{f"tokens_p50@{budget}": _tokens(pointed, budget) for budget in budgets},
        "over_budget": sum(one.over for one in asked),
        "without_recall": sum(one.late for one in asked),
        "ask_ms_p50": round(1e3 * median(one.seconds for one in asked), 2),
        "ask_ms_p95": round(1e3 * _p95([one.seconds for one in asked]), 2),
    }


def table(asked: Sequence[Asked]) -> str:
    """Markdown: a row a kind of question; the share, tokens and milliseconds at each budget."""
    budgets = sorted({one.budget for one in asked})
    kinds = _kinds(asked)
    pointed = [one for one in asked if _points(one)]
    rows = [
        _line("", "questions", *(name for budget in budgets for name in _head(budget))),
        "|---|" + "--:|" * (1 + 3 * len(budgets)),
        *(_row(kind, _of_kind(asked, kind), budgets) for kind in kinds if _counts(asked, kind)),
        _row("**all of these**", pointed, budgets),
        *(
            _row(f"{_label(kind)} (apart)", _of_kind(asked, kind), budgets)
            for kind in kinds
            if not _counts(asked, kind)
        ),
    ]
    return "\n".join(rows)


def notes(figures: dict[str, Any]) -> Iterator[str]:
    """What must be known beside the table."""
    yield (
        f"{figures['people']} people, {figures['exchanges']:,} exchanges; a question took "
        f"{figures['ask_ms_p50']} ms (median), {figures['ask_ms_p95']} ms (95th percentile)."
    )
    if figures["over_budget"]:
        yield f"{figures['over_budget']} prompts were over budget and score 0."
    if figures["without_recall"]:
        yield f"{figures['without_recall']} questions went without recall: it failed or was late."
    labels = figures["labels"]
    if any(labels[name] for name in ("repaired", "dropped", "questions")):
        yield (
            f"Labels of evidence: {labels['repaired']} repaired, {labels['dropped']} dropped; "
            f"{labels['questions']} questions without any left are not asked."
        )
    if labels["left_out"]:
        yield f"{labels['left_out']} questions are left out, as bench/README.md says."


def details(asked: Sequence[Asked]) -> Iterator[str]:
    """A line of JSON for each question and budget."""
    for one in asked:
        record = {
            "person": one.person,
            "question": one.question.id,
            "type": one.question.kind,
            "text": one.question.text,
            "evidence": len(one.question.evidence),
            "budget": one.budget,
            "tokens": one.tokens,
            "score": round(one.score, 4),
            "ms": round(1e3 * one.seconds, 2),
        }
        yield json.dumps(record, ensure_ascii=False)


def _head(budget: int) -> tuple[str, str, str]:
    return f"@{budget:,}", "tokens", "ms"


def _row(label: str, asked: Sequence[Asked], budgets: Sequence[int]) -> str:
    """Tokens and milliseconds are medians."""
    cells: list[str] = []
    for budget in budgets:
        here = [one for one in asked if one.budget == budget]
        share = _mean(here, budget)
        cells.append("-" if share is None else f"{share:.3f}")
        cells.append(f"{_tokens(here, budget):,.0f}")
        cells.append(f"{1e3 * median(one.seconds for one in here):.1f}" if here else "-")
    return _line(label, f"{len(asked) // len(budgets)}", *cells)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _label(kind: str) -> str:
    return f"{kind}: nothing recalled" if kind == QUIET else kind


def _points(one: Asked) -> bool:
    """Is a question part of the mean: does it point at its evidence?"""
    return one.recall is not None and one.question.kind not in APART


def _counts(asked: Sequence[Asked], kind: str) -> bool:
    return any(map(_points, _of_kind(asked, kind)))


def _kinds(asked: Sequence[Asked]) -> list[str]:
    return sorted({one.question.kind for one in asked})


def _of_kind(asked: Sequence[Asked], kind: str) -> list[Asked]:
    return [one for one in asked if one.question.kind == kind]


def _mean(asked: Sequence[Asked], budget: int) -> float | None:
    scores = [one.score for one in asked if one.budget == budget]
    return round(fmean(scores), 4) if scores else None


def _tokens(asked: Sequence[Asked], budget: int) -> float:
    found = [one.tokens for one in asked if one.budget == budget]
    return median(found) if found else 0


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
