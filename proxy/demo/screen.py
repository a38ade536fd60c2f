"""How a scene of the demo looks, in colour and without.

Nothing is said by colour alone, and no line needs more than ASCII: the output may be a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from proxy.demo.model import Json
from proxy.demo.scenes import Scene

MARK = "memory >"
LONGEST = 54
"""Characters of a message's line."""
_MEMORY, _LABEL, _ROLE, _QUIET = "bold white on dark_green", "cyan", "bold", "dim"


@dataclass(frozen=True, slots=True)
class Turn:
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
    return Text.assemble(line[: LONGEST - 3], "...") if len(line) > LONGEST else line


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
