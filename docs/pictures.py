"""Draws docs/drawings: what people would rather look at than read.  ``make picture``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.draw import LINE, Drawing, Kind

FOLDER = Path(__file__).with_name("drawings")


def request() -> Drawing:
    """The way of a request."""
    it = Drawing(860, 340)
    it.box(10, 60, 110, 110, "your app\nOpenAI SDK")
    it.box(740, 60, 110, 110, "upstream\nthe model")
    it.box(220, 20, 420, 190)
    it.text(236, 46, "memory-proxy", "head")
    for index, step in enumerate(("identify", "load", "compose", "relay", "commit")):
        x = 236 + 79 * index
        it.box(x, 64, 72, 44, step, "memory" if step in ("load", "compose", "commit") else "plain")
    it.arrow(122, 85, 218, 85, "new message")
    it.arrow(642, 85, 738, 85, "whole prompt")
    it.arrow(738, 150, 642, 150, "answer")
    it.arrow(218, 150, 122, 150, "answer")
    it.lines(
        366,
        146,
        ["the answer passes as it comes;", "its last event waits", "for the commit"],
        "small",
    )
    it.box(236, 252, 404, 52, "store: SQLite or Redis", "store")
    it.box(690, 252, 160, 52, "spool: own disk", "store")
    it.arrow(351, 250, 351, 110, dashed=True)
    it.arrow(588, 110, 588, 250, dashed=True)
    it.arrow(642, 278, 688, 278, dashed=True)
    it.text(340, 236, "one snapshot", "small", "end")
    it.text(600, 236, "all of the exchange, or nothing", "small")
    it.text(690, 326, "while the store is away", "small")
    it.text(236, 326, "then, in the background: recall's index, summary, facts", "small")
    return it


def prompt() -> Drawing:
    """The parts of a prompt."""
    it = Drawing(860, 416)
    parts: tuple[tuple[str, Kind, str], ...] = (
        ("system message", "plain", "the client's; else the one that the session remembers"),
        ("instructions", "memory", "memory.instructions.max_tokens"),
        ("summary", "memory", "memory.summary.max_tokens"),
        (
            "window: the newest turns",
            "memory",
            "what is left of memory.max_tokens, or max_messages",
        ),
        ("the client's earlier messages", "plain", "sent as they came, never cut, never counted"),
        (
            "what is known and recalled",
            "memory",
            "facts, profile, examples, wishes, older messages",
        ),
        ("the last user message", "new", "what the model answers"),
    )
    y = 20
    for name, kind, note in parts:
        height = 76 if name.startswith("window") else 44
        it.box(150, y, 270, height, name, kind)
        it.text(440, y + height / 2 + 5, note, "small")
        y += height + 8
    it.bracket(130, 20, 232)
    it.lines(
        10,
        112,
        ["the same from turn", "to turn: upstreams", "bill a cached prefix", "at less"],
        "small",
    )
    it.bracket(130, 312, 96)
    it.lines(10, 356, ["new with each turn", "at the tail"], "small")
    return it


def window() -> Drawing:
    """A window that fills, overflows, and is cut in one step."""
    it = Drawing(860, 330)
    rows: tuple[tuple[str, int, int], ...] = (
        ("10 turns: the window is full", 0, 10),
        ("11 turns: it overflows …", 0, 11),
        ("… and is cut to 70 %", 4, 11),
        ("12, 13, 14 turns: its start stays put", 4, 14),
        ("15 turns: cut again", 8, 15),
    )
    for row, (words, start, end) in enumerate(rows):
        y = 40 + 54 * row
        it.text(10, y + 20, words)
        for turn in range(end):
            kind: Kind = "faded" if turn < start else "memory"
            it.box(290 + 36 * turn, y, 30, 30, str(turn + 1), kind)
        if start:
            it.rule(287 + 36 * start, y - 8, 287 + 36 * start, y + 38)
    it.text(
        290,
        22,
        "each box is a turn; a full one is sent, a dashed one is in the history alone",
        "small",
    )
    it.text(
        10,
        318,
        "With a summary, dashed turns are sent as they were said until a summary covers them.",
        "small",
    )
    return it


def erase() -> Drawing:
    """What survives an erase."""
    it = Drawing(860, 380)
    gone = (
        "sessions, with messages of every state",
        "their exchanges, summaries and titles",
        "facts, profile, examples, wishes",
        "feedback, and what was proposed of it",
        'items below ("users", ID)',
        "recall's index and vectors",
        "background work that waits",
        "what waits in this host's spool",
    )
    left = (
        ("the mark", "ids and a time, no text: what began before is refused"),
        ("other hosts' spools", "refused by the mark when they are replayed"),
        ("Redis' own files", "until Redis rewrites its append-only file or snapshot"),
        ("counts", "of /metrics and /usage: numbers without a person"),
        ("outside", "backups, exports, the upstream's own logs, the app"),
    )
    it.box(10, 30, 370, 300)
    it.text(28, 58, "Gone when the receipt is there", "head")
    for index, line in enumerate(gone):
        it.text(28, 92 + 32 * index, line)
    it.box(420, 30, 430, 300, kind="faded")
    it.text(438, 58, "Not gone, and what becomes of it", "head")
    for index, (name, what) in enumerate(left):
        it.text(438, 92 + 46 * index, name)
        it.text(438, 92 + 46 * index + LINE, what, "small")
    it.text(
        10,
        362,
        "SQLite overwrites erased pages and empties its write-ahead log before the receipt.",
        "small",
    )
    return it


PICTURES: dict[str, Callable[[], Drawing]] = {
    "request": request,
    "prompt": prompt,
    "window": window,
    "erase": erase,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
