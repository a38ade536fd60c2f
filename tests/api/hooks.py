"""All that schemathesis is told beyond the document."""

from tests.api import deletions, refusals

__all__ = ["deletions", "refusals"]
