"""Asks the model while the session is being loaded, and waits for it no longer than it may."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from cachetools import LRUCache

from proxy.background.completion import Assignment, Completer, CompletionError, assignment
from proxy.memory.store import StoreError
from proxy.rewrite.question import Utterance, added, prompt_of
from proxy.settings import RewriteSettings

logger = logging.getLogger(__name__)

FEATURE = "rewrite"
"""What the tokens are counted for."""

AT_ONCE = 64
AT_ONCE_OF_ONE = 16
"""Questions that a process asks about at a time, of all tenants and of one."""

TOLERATED = 3
PAUSE = 30.0
"""After so many failures in a row nothing is asked for a tenant, for so many seconds: each would
cost its chat the whole time limit."""

TENANTS = 1_000
"""Tenants whose failures a process remembers."""

MAX_ANSWER_BYTES = 32 * 1024
"""Of an answer, which is one question, that are read."""

ENDING = 1.0
"""Seconds that requests have to end when the proxy does."""

Outcome = Literal["rewritten", "same", "late", "failed", "busy"]
"""``same``: nothing of the answer is of use.  ``busy``: it was not asked, as too many are under way
or the last ones failed."""


class Rewritten(msgspec.Struct, frozen=True):
    """``added`` are the words that recall looks for beside the question's own."""

    outcome: Outcome
    added: str = ""


BUSY, LATE = Rewritten("busy"), Rewritten("late")
FAILED, SAME = Rewritten("failed"), Rewritten("same")


class Rewriting:
    """A question that is being rewritten.  It need not be waited for: it ends by itself."""

    def __init__(self, task: asyncio.Task[Rewritten] | None, seconds: float) -> None:
        self._task = task
        self._until = asyncio.get_running_loop().time() + seconds

    async def result(self) -> Rewritten:
        """What came of it until its time was over, which began with the request."""
        if self._task is None:
            return BUSY
        left = self._until - asyncio.get_running_loop().time()
        await asyncio.wait({self._task}, timeout=max(0.0, left))
        if not self._task.done():
            self._task.cancel()
            return LATE
        return FAILED if self._task.cancelled() else self._task.result()


class Rewriter:
    """``count`` counts the tokens of a text."""

    def __init__(self, completer: Completer, count: Callable[[str], int]) -> None:
        self._completer, self._count = completer, count
        self._running: set[asyncio.Task[Rewritten]] = set()
        self._busy: Counter[str] = Counter()
        self._failures: LRUCache[str, tuple[int, float]] = LRUCache(TENANTS)

    def __repr__(self) -> str:
        return f"<Rewriter [running: {len(self._running)}]>"

    def begin(
        self,
        tenant: str,
        settings: RewriteSettings,
        model: str | None,
        question: str,
        before: Sequence[Utterance],
    ) -> Rewriting:
        """Ask about a question, with the messages before it, oldest first.

        ``model`` is the conversation's own, which is asked where the settings name no other.
        """
        if not self._may(tenant):
            return Rewriting(None, 0.0)
        text = prompt_of(question, before, settings.max_input_tokens, self._count)
        asked = assignment(
            tenant, FEATURE, settings, text, model, max_answer_bytes=MAX_ANSWER_BYTES
        )
        task = asyncio.create_task(self._request(asked, question, before), name="rewrite")
        self._running.add(task)
        self._busy[tenant] += 1
        task.add_done_callback(lambda task: self._ended(task, tenant))
        return Rewriting(task, settings.timeout)

    async def close(self) -> None:
        """End what is under way; who waits for it goes on with the question as it is."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=ENDING)

    def _may(self, tenant: str) -> bool:
        failures, until = self._failures.get(tenant, (0, 0.0))
        pausing = failures >= TOLERATED and asyncio.get_running_loop().time() < until
        free = len(self._running) < AT_ONCE and self._busy[tenant] < AT_ONCE_OF_ONE
        return free and not pausing

    def _ended(self, task: asyncio.Task[Rewritten], tenant: str) -> None:
        self._running.discard(task)
        self._busy[tenant] -= 1
        if not self._busy[tenant]:
            del self._busy[tenant]
        if task.cancelled() or task.result() is FAILED:
            self._failed(tenant)
        else:
            self._failures.pop(tenant, None)

    def _failed(self, tenant: str) -> None:
        failures, _ = self._failures.get(tenant, (0, 0.0))
        self._failures[tenant] = failures + 1, asyncio.get_running_loop().time() + PAUSE

    async def _request(
        self, asked: Assignment, question: str, before: Sequence[Utterance]
    ) -> Rewritten:
        try:
            answer = (await self._completer.complete(asked)).text
            more = added(question, before, answer)
        except (CompletionError, StoreError) as failure:
            logger.info("a question is looked for as it is: %s", failure)
            return FAILED
        except Exception:  # the boundary to a task that nobody may wait for: the chat goes on
            logger.exception("a question is looked for as it is")
            return FAILED
        return Rewritten("rewritten", more) if more else SAME
