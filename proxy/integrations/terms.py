"""The memory API's terms: its errors and its paths.

Knows no HTTP client: who asks nobody, as the proxy itself, need not load one.
"""

from __future__ import annotations

from urllib.parse import quote

DEFAULT_URL = "http://127.0.0.1:8080"

UNREACHABLE = "unreachable"
NO_ANSWER_OF_OURS = "unexpected_answer"
NO_TENANT = "tenant_not_found"
"""What the administrator's key is told of a tenant into which nothing has been put yet."""


class MemoryProxyError(Exception):
    """A request that failed.

    ``status`` is that of HTTP, None where no answer came.  ``code`` and ``message`` are what the
    proxy says (``reserved_namespace``, ``invalid_value``, ...).  Where no answer came, the code is
    ``unreachable``; where something else than the memory API answered, ``unexpected_answer``.
    """

    def __init__(self, status: int | None, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.status, self.code, self.message = status, code, message


class NoAnswerInTime(MemoryProxyError):
    """The proxy was there, and may go on with what it was asked."""


def segment(id: str) -> str:
    """An id as a segment of a path.  A dot as it is could be a step of the path."""
    return quote(id, safe="").replace(".", "%2E")
