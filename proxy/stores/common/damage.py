"""What lies in a store is not what was written there: how that looks to the code that reads it."""

from __future__ import annotations

from proxy.memory.store import StoreError

DAMAGE_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""What reading raises then; nothing that we wrote ourselves makes it do so."""


class BadCursor(ValueError):
    """A caller's mistake, and no damage."""


def as_damage(error: Exception) -> StoreError | None:
    """The failure that an error tells of; None where it tells of something else."""
    if not isinstance(error, DAMAGE_ERRORS) or isinstance(error, BadCursor):
        return None
    failure = StoreError("what is stored cannot be read")
    failure.__cause__ = error
    return failure
