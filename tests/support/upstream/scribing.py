"""An upstream that also plays the model which writes summaries, deterministically.

Its summary names the markers, ``[7]``, of all that it was told: those of the summary so far, then
those of the new lines, in their order.  So a test can see what was covered, how often, and when.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.memory.store import Queue
from tests.support.rig import Talk
from tests.support.talk.chatting import chatting
from tests.support.talk.recalling import blocks_in
from tests.support.upstream.answers import Script, chat_completion, json_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import eventually

SCRIBE = "scribe"
"""The model of summaries; chats use another one."""

PROMPT = "SO FAR: {summary}\nNEW:\n{new_lines}"
MARKER = re.compile(r"\[(\d+)\]")

FEW = {
    "memory__window": "message_window",
    "memory__max_messages": "4",
    "memory__evict_to": "1.0",
    "memory__recall__enabled": "false",
    "memory__summary__enabled": "true",
    "memory__summary__model": SCRIBE,
    "memory__summary__prompt": PROMPT,
}
"""Settings of a program: the last two turns, and a summary of those before."""

EVER = 2.0**40
"""A time by which everything is due."""

Plays = Callable[[str], Script]


def summary_of(text: str) -> Script:
    """The summary of what a request of the template above holds."""
    return json_answer(chat_completion("Told: " + " ".join(f"[{n}]" for n in markers(text))))


def markers(text: str) -> list[str]:
    return MARKER.findall(text)


class Scribe:
    """Answers an upstream's requests: chats by "ok", those of its own model as ``plays`` says."""

    def __init__(self, up: ScriptedUpstream, plays: Plays = summary_of) -> None:
        self.up, self.plays = up, plays
        self.asked: list[Request] = []
        up.always(self._answer)

    def _answer(self, request: Request) -> Script:
        if request.json["model"] != SCRIBE:
            return json_answer(chat_completion("ok"))
        self.asked.append(request)
        return self.plays(self.texts[-1])

    @property
    def texts(self) -> list[str]:
        """What it was asked: the one message of each request."""
        return [request.messages[0]["content"] for request in self.asked]

    @property
    def new_lines(self) -> list[str]:
        """Of each request."""
        return [text.partition("\nNEW:\n")[2] for text in self.texts]

    @property
    def read(self) -> list[str]:
        """The markers of all new lines, in the order in which it was asked."""
        return [n for lines in self.new_lines for n in markers(lines)]


class Prompt:
    """What the upstream got for a chat: the summary in it, and the markers told and shown."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        self.summary = blocks_in(messages).get("summary")
        self.told = markers(self.summary or "")
        rest = [m for m in messages if m["role"] not in ("system", "developer")]
        self.shown = [n for m in rest for n in markers(str(m["content"]))]


def told_once(prompt: Prompt, count: int, first: int = 0) -> None:
    """Every turn so far is in the summary or shown as it was said, once, in order."""
    assert [*prompt.told, *prompt.shown] == [str(n) for n in range(first, first + count)]


async def says(talk: Talk, number: int, words: int = 12, **headers: Any) -> Prompt:
    """One turn with a marker and so many words; what the upstream got."""
    text = f"[{number}] " + "word " * words
    response = await talk.ask([{"role": "user", "content": text}], **headers)
    assert response.status_code == 200, response.text
    assert not talk.rig.up.refused
    return Prompt(chats(talk.rig.up)[-1].messages)


def chats(up: ScriptedUpstream) -> list[Request]:
    return [request for request in up.requests if request.json["model"] != SCRIBE]


async def summarised(talk: Talk, version: int) -> str:
    """The session's summary, as soon as it has this version or a later one."""

    async def there() -> bool:
        session = await talk.rig.store.session(talk.key)
        return bool(session and session.summary and session.summary.version >= version)

    await eventually(there)
    session = await talk.rig.store.session(talk.key)
    assert session is not None and session.summary is not None
    return str(session.summary.text)


async def all_done(talk: Talk) -> None:
    """Until no work of this session waits or is held."""
    await nothing_waits(talk.rig.store, talk.session)


async def nothing_waits(store: Queue, session: str | None = None) -> None:
    """The same of a store: until no work of any session, or of this one, is there."""

    async def done() -> bool:
        there = await store.waiting(EVER, 1000)
        return not any(session in (None, work.session) for work in there)

    await eventually(done)


class Gate:
    """Plays a scribe that takes its time: each answer waits until it is let through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    def __call__(self, text: str) -> Script:
        script = summary_of(text)
        return Script(
            headers=script.headers, pieces=script.pieces, framing="length", before=self.open
        )


@dataclass
class Storyteller:
    """Tells the turns ``first``, ``first`` + 1, ... of a session to programs in turn; what each of
    them makes of it must hold every turn so far once."""

    up: ScriptedUpstream
    urls: Sequence[str]
    session: str = "s"
    first: int = 0
    count: int = 0

    async def tells(self, turns: int = 1) -> Prompt:
        """So many turns; what the upstream got for the last."""
        for _ in range(turns):
            number, url = self.first + self.count, self.urls[self.count % len(self.urls)]
            self.count += 1
            async with chatting(url) as chat:
                answer = await chat.say(f"[{number}] goes on", self.session, connection="close")
            assert answer.status_code == 200, answer.text
            prompt = self._prompt(number)
            told_once(prompt, self.count, self.first)
        return prompt

    def _prompt(self, number: int) -> Prompt:
        """Others may have told something meanwhile."""
        found = (Prompt(request.messages) for request in reversed(chats(self.up)))
        return next(prompt for prompt in found if prompt.shown[-1] == str(number))
