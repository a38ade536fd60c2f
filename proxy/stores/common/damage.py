"""Recognises damaged data in a store by the errors that reading it raises."""

from __future__ import annotations

from proxy.memory.store import StoreError

DAMAGE_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What reading damaged data raises; undamaged data never does."""


class BadCursor(ValueError):
    """A cursor that is invalid: the caller's mistake, no damage."""


def as_damage(error: Exception) -> StoreError | None:
    """The StoreError for an error that damaged data caused; None for other errors."""
    if not isinstance(error, DAMAGE_ERRORS) or isinstance(error, BadCursor):
        return None
    failure = StoreError("what is stored cannot be read")
    failure.__cause__ = error
    return failure
