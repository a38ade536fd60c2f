"""A conversation in a terminal: who said what, and which of it a model would still see.  Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from proxy.commands.output import Object, clock, text_of
from proxy.commands.plain import plain

STYLES = {"user": "bold green", "assistant": "bold blue", "tool": "magenta", "system": "yellow"}
LONGEST = 4000
"""Characters of a message that are shown; --json has all."""


def drawn(session: Object, messages: list[Object]) -> Iterator[Text]:
    """The messages by seq, with lines where the summary ends and where the window starts."""
    marks = _marks(session)
    system = session.get("system")
    if system:
        yield from _said("system", system, "")
    for message in messages:
        for seq in [seq for seq in sorted(marks) if seq <= message["seq"]]:
            yield Text(f"── {marks.pop(seq)} ──", style="yellow")
        yield from bubble(message)
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


def bubble(message: Object) -> Iterator[Text]:
    """One message: its head, and its words and calls below."""
    said: dict[str, Any] = message["message"]
    notes = [clock(message["created_at"])]
    notes += ["superseded"] if message["state"] == "superseded" else []
    notes += ["incomplete"] if message["incomplete"] else []
    style = "dim strike" if message["state"] == "superseded" else ""
    yield from _said(str(said.get("role")), said, f"{message['seq']}  {', '.join(notes)}", style)


def _said(role: str, said: Object, note: str, style: str = "") -> Iterator[Text]:
    yield Text.assemble((plain(role), STYLES.get(role, "bold")), (f"  {note}", "dim"))
    for block in _blocks(said):
        yield Text("  " + "\n  ".join(cut(block).split("\n")), style=style)


def _blocks(said: Object) -> Iterator[str]:
    text = text_of(said)
    if text:
        yield plain(text)
    if said.get("refusal"):
        yield plain(f"(refused) {said['refusal']}")
    for call in said.get("tool_calls") or ():
        called = call.get("function") or call
        yield plain(f"→ {called.get('name')}({_arguments(called.get('arguments'))})")


def _arguments(raw: object) -> str:
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)


def cut(text: str, longest: int = LONGEST) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left} more characters)"
