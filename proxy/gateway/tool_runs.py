"""Running the calls of memory that a model makes: bounded, noted down, never failing the chat."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from proxy.chat.tool_called import Called, MemoryCall
from proxy.chat.tool_offer import SAVE, SEARCH
from proxy.memory.model import Injection, SessionKey
from proxy.memory.store import StoreError
from proxy.settings import ProfileSettings

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds that memory may take for all calls of an answer together."""

MOST_CALLS = 8
"""Calls that are run of one round."""

MOST_TOKENS = 2000
"""Tokens of all results of a round."""

_ABSENT = "Memory is not available now. Go on without it."
_TOO_MANY = "Not done: too many calls at once."
_UNKNOWN = "Not done: there is no such function."
_UNUSED = "Not done: the other calls are answered first."


@dataclass(frozen=True, slots=True)
class Whose:
    """On whose behalf the model calls, and from where.

    ``exchange`` is None where the exchange is not recorded: then nothing is saved either.  It
    ``began`` then (Unix seconds).
    """

    key: SessionKey
    user: str
    exchange: str | None
    profile: ProfileSettings
    count: Callable[[str], int]
    """Tokens of a text."""
    began: float


class Told(NamedTuple):
    """A result: the text for the model, and the ids of the items that were saved or found."""

    text: str
    items: tuple[str, ...] = ()


class MemoryTools(Protocol):
    """What the model can do.  Both raise StoreError; ValueError says what is wrong with a text."""

    async def save(self, whose: Whose, text: str) -> Told: ...

    async def search(self, whose: Whose, query: str, room: int) -> Told:
        """At most ``room`` tokens, marked as reference material."""
        ...


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the exchange's record has it: no text.  ``items`` were saved or found."""

    round: int
    name: str
    ok: bool
    ms: float
    items: tuple[str, ...] = ()


class ToolLog:
    """What the model has called so far."""

    def __init__(self) -> None:
        self._runs: list[ToolRun] = []

    def add(self, run: ToolRun) -> None:
        self._runs.append(run)

    def into(self, injection: Injection) -> Injection:
        """The record with the calls in it."""
        if not self._runs:
            return injection
        return msgspec.structs.replace(
            injection, tools=msgspec.Raw(msgspec.json.encode(self._runs))
        )


class ToolRunner:
    """Runs the calls of one exchange.  ``names`` are the functions that it has been offered."""

    def __init__(
        self, tools: MemoryTools, whose: Whose, names: Collection[str], log: ToolLog
    ) -> None:
        self._tools, self._whose, self._names, self._log = tools, whose, names, log
        self._left = PATIENCE

    async def run(self, number: int, asked: Called) -> list[tuple[str, str]]:
        """Run the calls of round ``number``, in order; id and result of each.  Never raises."""
        room = MOST_TOKENS // len(asked.calls)
        results: list[tuple[str, str]] = []
        for place, call in enumerate(asked.calls):
            clock = time.perf_counter()
            refused = self._refused(place, call, asked)
            told, ok = (Told(refused), False) if refused else await self._told(call, room)
            seconds = time.perf_counter() - clock
            self._left -= seconds
            self._note(number, call, told.items, seconds, ok=ok)
            results.append((call.id, _within(told.text, room, self._whose.count)))
        return results

    def refuse(self, number: int, asked: Called) -> None:
        """Note calls that are not run: those of a round that offered none."""
        for call in asked.calls:
            self._note(number, call, (), 0.0, ok=False)

    def _refused(self, place: int, call: MemoryCall, asked: Called) -> str | None:
        """Why a call is not run.

        The client has to answer its own calls before anything that was found could be used.
        """
        if call.name not in self._names:
            return _UNKNOWN
        if asked.own and call.name == SEARCH:
            return _UNUSED
        return _TOO_MANY if place >= MOST_CALLS else None

    async def _told(self, call: MemoryCall, room: int) -> tuple[Told, bool]:
        try:
            async with asyncio.timeout(max(0.0, self._left)):
                return await self._call(call, room), True
        except ValueError as wrong:
            return Told(f"Not done: {wrong}."), False
        except TimeoutError:
            logger.warning("memory took too long for a call of the model")
        except StoreError as failure:
            logger.warning("a call of the model failed: %s", failure)
        except Exception:  # the boundary to memory: whatever is wrong with it, the chat goes on
            logger.exception("a call of the model failed")
        return Told(_ABSENT), False

    async def _call(self, call: MemoryCall, room: int) -> Told:
        text = call.argument()
        if call.name == SAVE:
            return await self._tools.save(self._whose, text)
        return await self._tools.search(self._whose, text, room)

    def _note(
        self, number: int, call: MemoryCall, items: tuple[str, ...], seconds: float, *, ok: bool
    ) -> None:
        ms = round(seconds * 1000, 3)
        self._log.add(ToolRun(round=number, name=call.name, ok=ok, ms=ms, items=items))


def _within(text: str, room: int, count: Callable[[str], int]) -> str:
    """The first lines of a text that have at most ``room`` tokens."""
    if len(text.encode()) <= room or count(text) <= room:
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        room -= count(f"{line}\n")
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)
