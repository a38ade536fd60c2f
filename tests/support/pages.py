"""README.md and docs/*.md as what can be checked of them: code blocks and tables.

A fence's info string is its language and what there is to know of it:

    ```toml served              the page's proxy has this configuration
    ```text printed             what the block before it prints; "…" stands for anything
    ```bash untested="why"      nothing runs it, and why not
    ```bash serves              it stays, and what follows asks it

Pages are named by their paths below docs/.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.program import ROOT

DOCS = ROOT / "docs"
RECIPES = tuple(sorted((DOCS / "recipes").glob("*.md")))
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")), *RECIPES)

_FENCE = re.compile(r"^```(\S*)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: where it is, its language, what its fence says of it, and its text."""

    page: str
    line: int
    language: str
    marks: dict[str, str]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_printed(self) -> bool:
        return "printed" in self.marks

    @property
    def untested(self) -> str | None:
        """Why nothing runs it."""
        return self.marks.get("untested")


def name_of(path: Path) -> str:
    """ "README.md", or a page's path below docs/."""
    return path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else path.name


def read(page: str) -> str:
    """The text of "README.md", or of a page of docs/."""
    (path,) = (path for path in PAGES if name_of(path) == page)
    return path.read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    text = read(page)
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found[1],
            _marks(found[2] or ""),
            found[3],
        )
        for found in _FENCE.finditer(text)
    ]


def all_blocks(*languages: str) -> list[Block]:
    """Of all pages; of these languages, or of all."""
    found = [block for path in PAGES for block in blocks(name_of(path))]
    return [block for block in found if not languages or block.language in languages]


def _marks(info: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in shlex.split(info))
    return {name: value for name, _, value in pairs}


def tables(page: str) -> list[list[list[str]]]:
    """Every table as rows of cells, its head first."""
    found = _TABLE.findall(read(page))
    split = [[cells(line) for line in table.splitlines()] for table in found]
    return [[head, *rows] for head, _, *rows in split]


def table(page: str, *head: str) -> list[list[str]]:
    """The rows of the page's one table whose head begins with these cells."""
    (found,) = (rows for first, *rows in tables(page) if first[: len(head)] == list(head))
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def code(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def is_like(printed: str, expected: str) -> bool:
    """Is this what was to be printed?  "…" stands for anything; line ends do not count."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.replace("\r\n", "\n").strip(), re.DOTALL) is not None
