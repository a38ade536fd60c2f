"""The conversation of the demo, and how a scene of it looks, in colour and without.  Pure.

Nothing is said by colour alone, and no line needs more than ASCII: the output may be a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from rich.console import Console
from rich.text import Text

from proxy.demo.apis import Json

BRIEF = "brief"
"""The profile with a window so small that a demo can overflow it."""
BRIEF_MESSAGES = 4

SUMMED = "summed"
"""The same window, with a summary of what it leaves out."""

APART = "apart"
"""The profile that sends what is recalled as a message of its own, which is easier to read."""

USER = "kai"

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


class Scene(msgspec.Struct, frozen=True):
    """One request of the application.  ``point`` is what there is to see."""

    title: str
    point: str
    session: str
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    stream: bool = True
    profile: str | None = None
    user: str | None = None
    waits_for: Literal["index", "summary"] | None = None
    """What the background has to have done first: nobody types that fast."""


def _user(text: str) -> tuple[Json, ...]:
    return ({"role": "user", "content": text},)


SCENES = (
    Scene(
        title="A conversation begins",
        point="Nothing is remembered yet: the request goes on as it came, byte for byte.",
        session="trip",
        messages=_user("Hi, my name is Kai."),
        user=USER,
    ),
    Scene(
        title="The app sends only what is new",
        point="The proxy puts the conversation in front of it, so the model can know.",
        session="trip",
        messages=_user("What is my name?"),
    ),
    Scene(
        title="Another session",
        point="It has a memory of its own, and nothing of the first one.",
        session="other",
        messages=_user("What is my name?"),
    ),
    Scene(
        title="The model calls a tool",
        point="The call is remembered as it was streamed.",
        session="trip",
        messages=_user("What is the weather in Oslo?"),
        tools=(_WEATHER,),
    ),
    Scene(
        title="The app answers the call, with nothing but the result",
        point="A result is never sent without its call: the proxy puts the call in front.",
        session="trip",
        messages=({"role": "tool", "tool_call_id": "call_1", "content": "Oslo has snow, -4 C"},),
        tools=(_WEATHER,),
        stream=False,
    ),
    Scene(
        title=f"A window of {BRIEF_MESSAGES} messages overflows (X-Memory-Profile: {BRIEF})",
        point="The oldest turns are left out of the prompt, whole turns at a time.",
        session="trip",
        messages=_user("What is my name?"),
        profile=BRIEF,
    ),
    Scene(
        title="With the default window again",
        point="Left out is not forgotten: the history keeps everything.",
        session="trip",
        messages=_user("Once more: what is my name?"),
    ),
    Scene(
        title=f"A week later, a new session of the same user (X-User-Id: {USER})",
        point="Recall finds what this question needs in the user's other sessions.",
        session="next-week",
        messages=_user("Do you still know my name?"),
        profile=APART,
        user=USER,
        waits_for="index",
    ),
    Scene(
        title=f"A window of {BRIEF_MESSAGES} messages with a summary (X-Memory-Profile: {SUMMED})",
        point="What leaves the window stays in the prompt until a summary tells of it.",
        session="trip",
        messages=_user("And now: what is my name?"),
        profile=SUMMED,
    ),
    Scene(
        title="A moment later",
        point="A model has written the summary in the background; no request waited for it.",
        session="trip",
        messages=_user("Do you still know my name?"),
        profile=SUMMED,
        waits_for="summary",
    ),
)


MARK = "memory >"
MAX_LINE = 54
"""Characters of a message's line."""
_MEMORY, _LABEL, _ROLE, _QUIET = "bold white on dark_green", "cyan", "bold", "dim"


class Turn(msgspec.Struct, frozen=True):
    """What one request led to.

    ``received`` is what the upstream got, ``answered`` what the application got back,
    ``remembered`` what was added to history, which had ``earlier`` messages before; ``headers``
    are the answer's.
    """

    received: tuple[Json, ...]
    answered: Json
    remembered: tuple[Json, ...]
    earlier: int
    headers: Mapping[str, str]


def opening(console: Console, address: str) -> None:
    _print(console, Text("memory-proxy demo", "bold"))
    _print(console, Text(f"The real proxy, on {address}, in front of a pretended model that"))
    _print(
        console, Text("knows only what it is sent. An app has two conversations: [trip], [other].")
    )
    _print(console, Text.assemble("What memory put into a request is marked: ", (MARK, _MEMORY)))


def closing(console: Console) -> None:
    _print(console, Text(""))
    _print(console, Text("With a model of your own:"))
    _print(console, Text("  memory-proxy serve --upstream http://127.0.0.1:11434/v1"))


def show(console: Console, number: int, scene: Scene, turn: Turn) -> None:
    _print(console, Text(""))
    _print(console, Text.assemble((f"{number}. {scene.title}", "bold"), f"  [{scene.session}]"))
    _print(console, Text(f"   {scene.point}", "italic"))
    for line in _lines(scene, turn):
        _print(console, line)


def _print(console: Console, line: Text) -> None:
    """One line, cut where the terminal ends: a wrapped conversation is hard to read."""
    console.print(line, no_wrap=True, overflow="ellipsis", highlight=False)


def _lines(scene: Scene, turn: Turn) -> Iterator[Text]:
    yield from _labelled("app sends", [_said(message) for message in scene.messages])
    yield from _labelled("upstream gets", _received(scene, turn))
    yield from _labelled("app gets", [_said(turn.answered)])
    yield from _labelled("", [Text(line, _QUIET) for line in _headers(turn)])
    yield from _labelled("remembered", [Text(_remembered(turn))])


def _labelled(label: str, lines: Iterable[Text]) -> Iterator[Text]:
    for line in lines:
        own = line.plain.startswith(MARK)
        gap = "" if own else " " * (len(MARK) + 1)
        yield Text.assemble(("   " + label.ljust(14), _LABEL), gap, line)
        label = ""


def _received(scene: Scene, turn: Turn) -> Iterator[Text]:
    marks = from_memory(scene.messages, turn.received)
    stored = [own for own, message in zip(marks, turn.received, strict=True) if not _block(message)]
    left_out = turn.earlier - sum(stored)
    if left_out > 0:
        yield Text(f"({left_out} older messages are left out)", _QUIET)
    for message, remembered in zip(turn.received, marks, strict=True):
        for line in map(_shortened, _said(message).split("\n")):
            yield Text.assemble((MARK, _MEMORY), " ", line) if remembered else line


def _block(message: Json) -> bool:
    """Is this what memory says, and not a message of the conversation?"""
    return str(message.get("content") or "").startswith("<memory ")


def _shortened(line: Text) -> Text:
    return Text.assemble(line[: MAX_LINE - 3], "...") if len(line) > MAX_LINE else line


def from_memory(sent: Sequence[Json], received: Sequence[Json]) -> list[bool]:
    """Which of the received messages the application did not send itself.

    What it sent is all there, in its order, and memory goes in front: so it is looked for from
    the end.
    """
    own = list(sent)
    marks: list[bool] = []
    for message in reversed(received):
        ours = bool(own) and message == own[-1]
        marks.append(not ours)
        if ours:
            own.pop()
    return marks[::-1]


def _said(message: Json) -> Text:
    text = message.get("content") or ""
    for call in message.get("tool_calls", ()):
        function = call["function"]
        text += f"calls {function['name']}({function['arguments']})"
    return Text.assemble((f"{message['role']:<10}", _ROLE), text)


def _headers(turn: Turn) -> Iterator[str]:
    fields = [": ".join(field) for field in turn.headers.items()]
    yield from (", ".join(fields[:2]), ", ".join(fields[2:]))


def _remembered(turn: Turn) -> str:
    roles = " + ".join(message["role"] for message in turn.remembered)
    return f"{roles}; the session has {turn.earlier + len(turn.remembered)} messages now"
