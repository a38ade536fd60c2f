"""Prints for commands: tables and conversations for people, or with ``--json`` the API's objects.

Stored text is not trusted: escape sequences, control characters and bidirectional marks are shown
as text, not sent to the terminal (Unicode TR36, section 3.6).
"""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.chat.tools.display import displayed_calls
from proxy.commands.failure import CommandError

Object = Mapping[str, Any]

_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class _TextConsole(Console):
    """A console for stored text, which leaves the handling of a broken pipe to the command."""

    def __init__(self, file: TextIO | None = None, *, stderr: bool = False) -> None:
        super().__init__(file=file, stderr=stderr, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Output:
    """``as_json``: one JSON object a line, for programs."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return _TextConsole(standard_output())

    @cached_property
    def stderr(self) -> Console:
        """Standard error, for messages to people even if the output is for programs."""
        return _TextConsole(stderr=True)

    def print_object(self, found: Object, fields: Mapping[str, object]) -> None:
        """Print an object: with --json itself, else some of its fields below each other."""
        if self.as_json:
            return self.print_json(found)
        self.console.print(field_table(fields))

    def print_list(self, found: Iterable[Object], columns: Mapping[str, str]) -> bool:
        """Print objects: with --json one a line, else a table of some fields (path by heading), or
        one below the other if their ids are too long for a table.

        False if there are none.
        """
        if self.as_json:
            some = False
            for each in found:
                self.print_json(each)
                some = True
            return some
        rows = list(found)
        if not rows:
            return False
        cells = [
            {heading: cell(_field_at(row, path), heading) for heading, path in columns.items()}
            for row in rows
        ]
        table, width = _table(columns, cells), self.console.width
        if _width(self.console, table) <= width or _width_of_ids(cells) <= width // 3:
            self.console.print(table)
        else:
            for fields in cells:
                self.console.print(_entry(fields), soft_wrap=True)
        return True

    def note(self, sentence: str) -> None:
        """Print a sentence, unless the output is for programs."""
        if not self.as_json:
            self.console.print(Text(sentence), soft_wrap=True)

    def print_json(self, found: object) -> None:
        file = standard_output()
        file.write(json.dumps(found, ensure_ascii=True) + "\n")
        file.flush()


def count_of(count: int, things: str) -> str:
    """ "3 memories", "1 memory": of plurals that end in s, or have no other form."""
    if count != 1 or not things.endswith("s"):
        return f"{count} {things}"
    return f"1 {things[:-3]}y" if things.endswith("ies") else f"1 {things[:-1]}"


def standard_output() -> TextIO:
    """Standard output.  Raises CommandError if it is closed."""
    if sys.stdout is None:
        raise CommandError("Standard output is closed.")
    return sys.stdout


def discard_output() -> None:
    """Drop what standard output has not written yet, so that the interpreter does not flush it."""
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def field_table(fields: Mapping[str, object]) -> Table:
    """Fields under each other."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(name, cell(value))
    return table


def _table(columns: Iterable[str], cells: Iterable[Mapping[str, Text]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns:
        whole, justify = heading in IDS, _justify_of(heading)
        table.add_column(heading, overflow="fold", justify=justify, no_wrap=whole)
    for fields in cells:
        table.add_row(*fields.values())
    return table


def _width(console: Console, table: Table) -> int:
    """The width of a table that folds nothing."""
    return console.measure(table, options=console.options.update(width=MAX_WIDTH)).maximum


def _width_of_ids(cells: Sequence[Mapping[str, Text]]) -> int:
    return sum(max(row[name].cell_len for row in cells) for name in IDS & cells[0].keys())


def _entry(fields: Mapping[str, Text]) -> Text:
    """An object with its id on a line of its own."""
    others = [
        Text.assemble((f"{heading} ", "dim"), text)
        for heading, text in fields.items()
        if heading != "id"
    ]
    return Text("\n  ").join([fields["id"], *([Text("  ").join(others)] if others else [])])


IDS = frozenset({"id", "user"})
"""Shown whole and unbroken: people copy them into the next command."""

MAX_WIDTH = 10_000
NUMBERS = frozenset({"messages", "tokens", "sessions", "score", "seq", "exchanges"})
TIMES = frozenset({"active", "since", "created"})
SHORT = 60


def _justify_of(heading: str) -> Any:
    return "right" if heading in NUMBERS else "left"


def _field_at(row: Object, path: str) -> object:
    """The first non-empty value of the fields in ``path``, separated by ``|``."""
    return next((row[name] for name in path.split("|") if row.get(name) not in (None, "")), None)


def cell(value: object, heading: str = "") -> Text:
    if value is None:
        return Text("-", style="dim")
    if heading in TIMES and isinstance(value, int | float):
        return Text(ago(value), style="dim")
    if isinstance(value, float):
        return Text(f"{value:.3g}")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if heading and heading not in IDS and len(line(text)) > SHORT:
        return Text(line(text)[: SHORT - 1] + "…")
    return Text(line(text) if heading else plain(text))


def ago(moment: float) -> str:
    """How long ago a time was."""
    seconds = max(0.0, time.time() - moment)
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"


def clock(moment: float) -> str:
    """A time as people read it (UTC)."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


def text_of(message: Object) -> str:
    """The text of a message, its parts on lines of their own."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    said = [part.get("text") or f"[{part.get('type')}]" for part in parts if isinstance(part, dict)]
    return "\n".join(map(str, said))


_KEPT = frozenset("\n\t")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""Needed to write some languages, and families of emoji."""


def plain(text: str) -> str:
    """The text with control and other invisible characters escaped."""
    return "".join(_escaped(character) for character in text)


def line(text: str) -> str:
    """The same in one line."""
    return plain(" ".join(text.split()))


def _escaped(character: str) -> str:
    if character in _KEPT or character in _JOINERS:
        return character
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"\\u{{{code:x}}}"


STYLES = {"user": "bold green", "assistant": "bold blue", "tool": "magenta", "system": "yellow"}
MAX_SHOWN_CHARACTERS = 4000
"""Characters of a message that are shown; --json has all."""


def render_session(session: Object, messages: list[Object]) -> Iterator[Text]:
    """The messages by seq, with lines where the summary ends and where the window starts."""
    marks = _marks(session)
    system = session.get("system")
    if system:
        yield from _text_lines("system", system, "")
    for message in messages:
        for seq in [seq for seq in sorted(marks) if seq <= message["seq"]]:
            yield Text(f"── {marks.pop(seq)} ──", style="yellow")
        yield from render_message(message)
    for left in marks.values():
        yield Text(f"── {left} ──", style="yellow")


def _marks(session: Object) -> dict[int, str]:
    marks: dict[int, str] = {}
    if session["window_start"]:
        marks[session["window_start"]] = "the window starts here"
    summary = session.get("summary")
    if summary:
        edited = ", edited" if summary["edited"] else ""
        until = summary["covers_until"] + 1
        covered = f"up to here the summary stands for it (version {summary['version']}{edited})"
        marks[until] = "; ".join(filter(None, (covered, marks.get(until))))
    return marks


def render_message(message: Object) -> Iterator[Text]:
    """One message: a heading, and its text and calls below."""
    said: dict[str, Any] = message["message"]
    notes = [clock(message["created_at"])]
    notes += ["superseded"] if message["state"] == "superseded" else []
    notes += ["incomplete"] if message["incomplete"] else []
    style = "dim strike" if message["state"] == "superseded" else ""
    yield from _text_lines(
        str(said.get("role")), said, f"{message['seq']}  {', '.join(notes)}", style
    )


def _text_lines(role: str, said: Object, note: str, style: str = "") -> Iterator[Text]:
    yield Text.assemble((plain(role), STYLES.get(role, "bold")), (f"  {note}", "dim"))
    for block in _blocks(said):
        yield Text("  " + "\n  ".join(cut(block).split("\n")), style=style)


def _blocks(said: Object) -> Iterator[str]:
    text = text_of(said)
    if text:
        yield plain(text)
    if said.get("refusal"):
        yield plain(f"(refused) {said['refusal']}")
    audio = said.get("audio")
    if isinstance(audio, dict):
        yield plain(f"[audio] {audio.get('transcript') or ''}").rstrip()
    for call in displayed_calls(said):
        yield plain(f"→ {call.name}({call.arguments})")


def cut(text: str, longest: int = MAX_SHOWN_CHARACTERS) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left} more characters)"
