"""What schemathesis is told beyond the document: when what was deleted may be there again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import UseAfterFree
from schemathesis.specs.openapi import checks

MAKES_ANYTHING = frozenset({"forkSession", "importFile"})
"""Operations whose body says what they make."""


@schemathesis.hook
def before_call(context: Any, case: Any, **sent: Any) -> None:
    """On a way from link to link no deletion is a dry run."""
    linked = case.meta is not None and case.meta.phase.name == TestPhase.STATEFUL
    if linked and case.meta.generation.mode.is_positive and case.method.upper() == "DELETE":
        (case.query or {}).pop("dry_run", None)


CHECKS.unregister("use_after_free")


@schemathesis.check
def use_after_free(ctx: Any, response: Any, case: Any) -> bool | None:
    """Theirs; but whoever says something in a session that was deleted makes it anew."""
    try:
        return checks.use_after_free(ctx, response, case)
    except UseAfterFree as failure:
        if _made_anew(ctx, failure, case):
            return None
        raise


def _made_anew(ctx: Any, failure: UseAfterFree, case: Any) -> bool:
    gone = failure.free.partition(" ")[2]
    made = (_path(each) for each in _between(ctx, failure.deleted_case_id, case.id))
    return any(path is None or path.startswith(f"{gone}/") for path in made)


def _between(ctx: Any, deleted: str | None, used: str) -> Iterator[Any]:
    """The requests that made something since then."""
    cases = list(ctx.internals.find_all_cases())
    ids = [each.id for each in cases]
    for case in cases[ids.index(deleted) + 1 : ids.index(used)]:
        answer = ctx.internals.find_response(case_id=case.id)
        if case.method.upper() in ("POST", "PUT") and answer is not None and answer.ok:
            yield case


def _path(case: Any) -> str | None:
    """Where it made something; None where only its body says so."""
    if case.operation.definition.raw["operationId"] in MAKES_ANYTHING:
        return None
    path: str = case.formatted_path
    return path
