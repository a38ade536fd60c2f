"""All that schemathesis is told beyond the document."""

from tests.api import deletions, escapes, refusals

__all__ = ["deletions", "escapes", "refusals"]
