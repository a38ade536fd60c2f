"""What a command prints: tables for people, or with ``--json`` the API's own objects."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proxy.commands.failure import CommandError
from proxy.commands.plain import line, plain

Object = Mapping[str, Any]

_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class _Paper(Console):
    """A console of stored text, which leaves it to the command how a broken pipe ends."""

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
        return _Paper(standard_output())

    @cached_property
    def aside(self) -> Console:
        """For who is asked something, also where the output is for programs."""
        return _Paper(stderr=True)

    def one(self, found: Object, fields: Mapping[str, object]) -> None:
        """An object: as it came, or some of its fields under each other."""
        if self.as_json:
            return self.raw(found)
        self.console.print(listed(fields))

    def many(self, found: Iterable[Object], columns: Mapping[str, str]) -> bool:
        """Objects: a line each, or a table of some fields (by heading).  False: there are none."""
        if self.as_json:
            some = False
            for each in found:
                self.raw(each)
                some = True
            return some
        rows = list(found)
        if not rows:
            return False
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in columns:
            table.add_column(heading, overflow="fold", justify=_side(heading))
        for row in rows:
            table.add_row(*(cell(_at(row, path), heading) for heading, path in columns.items()))
        self.console.print(table)
        return True

    def say(self, sentence: str) -> None:
        """For people only."""
        if not self.as_json:
            self.console.print(Text(sentence), soft_wrap=True)

    def raw(self, found: object) -> None:
        file = standard_output()
        file.write(json.dumps(found, ensure_ascii=True) + "\n")
        file.flush()


def standard_output() -> TextIO:
    """Raises CommandError where who started this has closed it."""
    if sys.stdout is None:
        raise CommandError("Standard output is closed.")
    return sys.stdout


def abandon() -> None:
    """Give up what standard output has not taken: the interpreter must not try to flush it."""
    with suppress(OSError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def listed(fields: Mapping[str, object]) -> Table:
    """Fields under each other."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(name, cell(value))
    return table


NUMBERS = frozenset({"messages", "tokens", "sessions", "score", "seq", "exchanges"})
TIMES = frozenset({"active", "since", "created"})
SHORT = 60


def _side(heading: str) -> Any:
    return "right" if heading in NUMBERS else "left"


def _at(row: Object, path: str) -> object:
    """The first of several fields, with ``|`` between them, that has something."""
    return next((row[name] for name in path.split("|") if row.get(name) not in (None, "")), None)


def cell(value: object, heading: str = "") -> Text:
    if value is None:
        return Text("-", style="dim")
    if heading in TIMES and isinstance(value, int | float):
        return Text(ago(value), style="dim")
    if isinstance(value, float):
        return Text(f"{value:.3g}")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if heading and heading != "id" and len(line(text)) > SHORT:
        return Text(line(text)[: SHORT - 1] + "…")
    return Text(line(text) if heading else plain(text))


def ago(moment: float, now: float | None = None) -> str:
    """How long ago a time was."""
    seconds = max(0.0, (time.time() if now is None else now) - moment)
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"


def clock(moment: float) -> str:
    """A time as people read it (UTC)."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


def text_of(message: Object) -> str:
    """What a message says, its parts one under the other."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    said = [part.get("text") or f"[{part.get('type')}]" for part in parts if isinstance(part, dict)]
    return "\n".join(map(str, said))
