"""What schemathesis is told beyond the document: which right requests may be refused, and why.

Some rules cannot be said in a schema.  Where one is broken the proxy answers 400, and names the
parameter or the rule: of such an operation that answer is right, and every other 400 is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import schemathesis

from proxy.memory_api.fields import ID_PATTERN

IDS = ("session", "user")

_ID = re.compile(ID_PATTERN)

CURSOR = frozenset({"after"})
"""Cursors are given out, not made up."""

UNSAYABLE: Mapping[str, frozenset[str]] = {
    "listSessions": CURSOR,
    "listUsers": CURSOR,
    "listMemories": CURSOR,
    # As many times as there are messages.
    "importMessages": frozenset({"created_at"}),
    # At most 31 days by the hour.
    "getStats": frozenset({"days"}),
    # The last day is not before the first one, and not too far behind it.
    "getUsage": frozenset({"from"}),
    # The operator decides whether there are summaries.
    "rebuildSummary": frozenset({"summary_disabled"}),
    # A file is described by its format, not by a schema.
    "importFile": frozenset({"invalid_import", "session", "invalid_value"}),
    # A patch has to fit the document as it is.
    "updateProfile": frozenset({"invalid_value"}),
    # Conditions hold for fields that there are, and operators are few.
    "searchMemories": frozenset({"filter"}),
    "searchItems": frozenset({"filter"}),
    # What is taken back must not have been taken back already.
    "rewindSession": frozenset({"to"}),
    # The role must stay, and so does the call that is answered; a message says something.
    "updateMessage": frozenset({"message", "message.role", "message.tool_call_id"}),
    # Only facts can be changed, and other memories have ids as well.
    "updateMemory": frozenset({"invalid_value"}),
}
"""By operation, the ``param`` or ``code`` of refusals that no schema can foretell."""


@schemathesis.check
def a_right_request_is_refused_for_a_reason(ctx: Any, response: Any, case: Any) -> bool | None:
    """A 400 to a request that fits the document is one of those above."""
    if not _is_right(case):
        return None
    if response.status_code == 400:
        error = response.json()["error"]
        known = UNSAYABLE.get(case.operation.definition.raw["operationId"], frozenset())
        assert {error["param"], error["code"]} & known, error["message"]
    return None


def _is_right(case: Any) -> bool:
    """Does it fit the document?  In a chain of requests ids come along that do not."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return False
    ids = [str(case.path_parameters[name]) for name in IDS if name in case.path_parameters]
    return all(_ID.search(id) for id in ids)
