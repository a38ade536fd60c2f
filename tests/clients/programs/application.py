"""What the programs beside this file share: they do as they are told, one line of JSON a command.

They run in environments that have a client library and nothing of ours, so that this is the
standard library alone.  A program gives `serve` its commands: functions of the place to talk to.
A generator's values are told one by one, as they come.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

MODEL = "scripted-1"
KEY = "sk-test"
RESPONSES = os.environ.get("API") == "responses"
"""Is it the Responses API that is to be asked?"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to talk, and as which conversation."""

    origin: str
    session: str

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def url_of_session(self) -> str:
        """For those that can set nothing but their base URL."""
        return f"{self.origin}/s/{self.session}/v1"

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Session-Id": self.session}


def weather(city: str) -> str:
    """Tells the weather in a city.

    Args:
        city: The name of the city.
    """
    return f"snow in {city}"


WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
"""The tool as OpenAI's API wants it."""


def result_of(name: str, arguments: str) -> str:
    """What the tool of that name says."""
    assert name == "weather", name
    return weather(**json.loads(arguments))


def serve(*commands: Callable[..., Any]) -> None:
    """Do what the lines of standard input say; what libraries print goes to standard error."""
    known = {command.__name__: command for command in commands}
    with os.fdopen(os.dup(1), "w") as out, asyncio.Runner() as runner:
        os.dup2(2, 1)

        def tell(what: dict[str, Any]) -> None:
            print(json.dumps(what), file=out, flush=True)

        tell({"ready": sorted(known)})
        for line in sys.stdin:
            asked = json.loads(line)
            place = Place(asked["origin"], asked["session"])
            try:
                tell({"result": _done(known[asked["do"]], place, asked["with"], runner, tell)})
            except Exception as error:  # noqa: BLE001 - whatever a library raises is to be told
                traceback.print_exc()
                tell({"raised": list(_causes(error, place))})


def _done(
    command: Callable[..., Any],
    place: Place,
    arguments: dict[str, Any],
    runner: asyncio.Runner,
    tell: Callable[[dict[str, Any]], None],
) -> Any:
    given = command(place, **arguments)
    if inspect.isgenerator(given):
        return _told(given, tell)
    if inspect.isasyncgen(given):
        return runner.run(_told_later(given, tell))
    return runner.run(given) if inspect.iscoroutine(given) else given


def _told(pieces: Iterator[Any], tell: Callable[[dict[str, Any]], None]) -> None:
    for piece in pieces:
        tell({"piece": piece})


async def _told_later(pieces: AsyncIterator[Any], tell: Callable[[dict[str, Any]], None]) -> None:
    async for piece in pieces:
        tell({"piece": piece})


def _causes(error: BaseException | None, place: Place) -> Iterator[dict[str, Any]]:
    """An exception and those that led to it, but for where it was; some lead to themselves."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        yield {
            "kind": f"{type(error).__module__}.{type(error).__qualname__}",
            "status": getattr(error, "status_code", None),
            "retry_after": headers.get("retry-after"),
            "message": str(error).replace(place.origin, "…"),
        }
        error = error.__cause__ or error.__context__
