"""Having a model write a summary, part after part, and taking nothing else from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.background.completion import Assignment, Completer
from proxy.settings.written import SummarySettings
from proxy.summary.judge import judge
from proxy.summary.lines import Count
from proxy.summary.prompt import fill

logger = logging.getLogger(__name__)

TRIES = 2
"""How often the model is asked the same: what it writes is not always a summary."""


@dataclass(frozen=True, slots=True)
class Commission:
    """Who pays, what is wanted, and the model that the session uses itself."""

    tenant: str
    settings: SummarySettings
    session_model: str | None = None

    def assignment(self, text: str = "") -> Assignment:
        settings = self.settings
        key = settings.api_key
        return Assignment(
            tenant=self.tenant,
            feature="summary",
            text=text,
            model=settings.model,
            default_model=self.session_model,
            url=settings.url,
            key=key.get_secret_value() if key else None,
            parameters=settings.parameters,
            timeout=settings.timeout,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """A summary, the tokens of its text, and the model that wrote it."""

    text: str
    tokens: int
    model: str


class Writer:
    """``count`` gives the tokens of a text, on other threads too."""

    def __init__(self, completer: Completer, count: Count) -> None:
        self._completer, self._count = completer, count

    def ready(self, commission: Commission) -> bool:
        return self._completer.ready(commission.assignment())

    async def write(
        self, commission: Commission, base: str, parts: Sequence[str]
    ) -> Written | None:
        """The summary ``base`` with all the parts folded in, one request for each.

        None if the model does not write a summary.  Raises CompletionError, StoreError.
        """
        written: Written | None = None
        for part in parts:
            written = await self._fold(commission, written.text if written else base, part)
            if written is None:
                return None
        return written

    async def _fold(self, commission: Commission, base: str, part: str) -> Written | None:
        assignment = commission.assignment(fill(commission.settings, base, part))
        for _ in range(TRIES):
            completed = await self._completer.complete(assignment)
            settings = commission.settings
            verdict = await asyncio.to_thread(
                judge, completed.text, settings.prompt, settings.max_tokens, self._count
            )
            fault = "cut off" if completed.cut else verdict.fault
            if fault is None:
                return Written(verdict.text, verdict.tokens, completed.model)
            logger.warning("what a model wrote is no summary: %s", fault)
        return None
