"""The contract of asking a model in the background: what is asked, what comes of it.

Design: such a request has no memory itself, is bounded and counted, and never holds up a chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Assignment:
    """One thing to write: ``text`` is the single user message of the request.

    ``feature`` is "summary", "facts", …: what the tokens are counted for.  ``model`` "" means the
    one that ``default_model`` names.  ``url`` "" is the upstream.  ``key`` None: the upstream's, or
    the credential of the tenant's last request; to another ``url`` neither is ever sent.
    ``parameters`` go into the body as they are.  ``schema`` is a JSON Schema that the answer should
    follow; a model that knows no schemas is asked without, so the text must describe it too.
    ``timeout`` in seconds.
    """

    tenant: str
    feature: str
    text: str
    model: str = ""
    default_model: str | None = None
    url: str = ""
    key: str | None = field(default=None, repr=False)
    parameters: Mapping[str, object] = field(default_factory=dict)
    schema: Mapping[str, object] | None = None
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class Completed:
    """What a model has written, and which model it says it is.

    ``cut``: it was not finished when the tokens that it may write were used up.
    """

    text: str
    model: str
    cut: bool = False


class CompletionError(Exception):
    """Nothing came of an assignment."""


class Refused(CompletionError):
    """The same request would be refused again (a 4xx that is not about the moment)."""


class Denied(Refused):
    """A refusal that is not about what was asked: key, rights, quota or model are not right."""


class Failed(CompletionError):
    """It may go well later: no connection, no answer in time, 408, 409, 425, 429, 5xx, nonsense.

    ``retry_after`` in seconds, None where the answer did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoCredential(CompletionError):
    """The tenant's credential is not known in this process: not before its next request."""


class Spent(CompletionError):
    """The tenant has no tokens left for today; ``until`` (Unix seconds) there are new ones."""

    def __init__(self, until: float) -> None:
        super().__init__("the tokens of the day are spent")
        self.until = until


class Completer(Protocol):
    """Asks models."""

    def ready(self, assignment: Assignment) -> bool:
        """Is there a credential for it, or none needed?"""
        ...

    async def complete(self, assignment: Assignment) -> Completed:
        """Ask once.  Raises Refused, Failed, NoCredential, Spent, StoreError."""
        ...
