"""What recall adds to a chat request: the same proxy, one profile with recall and one without.

The two requests of a pair follow each other, in turns which comes first, so that what disturbs one
disturbs both; each begins a new session of a user who has said much.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import processes
from bench.cost.fill import Seeded
from bench.cost.text import Talk
from bench.processes import Process
from bench.wire import Answer, Connection, connect

WARM_UP = 10
PAUSE = 0.6
"""Seconds between pairs, in which what was just said is indexed, a moment after a session is quiet:
people do not chat without rest, and who asks in another session before that waits for it."""

OFF = "without"
CONFIG = f"[profiles.{OFF}.recall]\nenabled = false\n"


@dataclass(slots=True)
class Pairs:
    """Seconds of requests with and without recall.

    ``within``: what recall itself took of the first, as Server-Timing says.  ``recalled`` answers
    had passages.
    """

    on: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    within: list[float] = field(default_factory=list)
    recalled: int = 0

    @property
    def added_p50(self) -> float:
        """The median of the differences."""
        return median(a - b for a, b in zip(self.on, self.off, strict=True))


async def measure(
    folder: Path, url: str, talk: Talk, user: Seeded, pairs: int, step: Callable[[int], None]
) -> Pairs:
    """Raises RuntimeError where an answer is not as it should be."""
    config = folder / "added.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with (
        processes.upstream(folder) as upstream,
        processes.proxy(folder, upstream.url, url, config) as proxy,
    ):
        return await _measure(proxy, talk, user, pairs, step)


async def _measure(
    proxy: Process, talk: Talk, user: Seeded, pairs: int, step: Callable[[int], None]
) -> Pairs:
    found, connection = Pairs(), await connect(proxy.port)
    try:
        for number in range(WARM_UP + pairs):
            text = talk.question(user.texts[number % len(user.texts)])
            names = ("", OFF) if number % 2 else (OFF, "")
            answers = {
                name: await _ask(connection, user.user, f"{number}-{name}", text, name)
                for name in names
            }
            if number >= WARM_UP:
                found.on.append(answers[""].total)
                found.off.append(answers[OFF].total)
                found.within.append(_within(answers[""]))
                found.recalled += _recalled(answers[""]) > 0
            step(1)
            await asyncio.sleep(PAUSE)
    finally:
        connection.close()
    return found


async def _ask(connection: Connection, user: str, session: str, text: str, profile: str) -> Answer:
    extra = [f"x-user-id: {user}", f"x-session-id: added-{session}"]
    extra += [f"x-memory-profile: {profile}"] if profile else []
    answer = await connection.ask(chat_request(text, extra))
    if answer.status != 200:
        raise RuntimeError(f"an answer had status {answer.status}")
    if profile and _recalled(answer):
        raise RuntimeError("something was recalled with recall off")
    return answer


def _within(answer: Answer) -> float:
    timing = re.search(rb"recall;dur=([\d.]+)", answer.headers.get(b"server-timing", b""))
    if timing is None:
        raise RuntimeError("recall was not asked")
    return float(timing[1]) / 1000


def _recalled(answer: Answer) -> int:
    return int(answer.headers.get(b"x-memory-recalled", b"0"))


def chat_request(text: str, extra: Sequence[str]) -> bytes:
    """A chat's only message, with headers beside the usual ones."""
    message = {"role": "user", "content": text}
    body = json.dumps({"model": "mock", "messages": [message]}).encode()
    head = [
        "POST /v1/chat/completions HTTP/1.1",
        "host: bench",
        "authorization: Bearer bench",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *extra,
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
