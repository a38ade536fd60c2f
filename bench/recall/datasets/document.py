"""A file of a set: JSON, lines of JSON, or CSV with a head; and the files that belong to it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ABOVE = 3
"""Folders above a file's own in which what belongs to it is looked for."""


@dataclass(frozen=True, slots=True)
class Document:
    """``value`` is the JSON of the file; a list of all lines' or rows' where it has several."""

    path: Path
    value: Any

    @property
    def records(self) -> list[Any]:
        """What it is a list of; a file of one object is a list of one."""
        return self.value if isinstance(self.value, list) else [self.value]

    def beside(self, name: str) -> Any:
        """The value of another file of the set.  Raises ValueError where there is none."""
        places = (self.path.parent, *self.path.parent.absolute().parents[:ABOVE])
        for place in places:
            if (place / name).is_file():
                return read(place / name).value
        raise ValueError(f"{self.path}: {name} belongs to it, and is not there")


def read(path: Path) -> Document:
    """Raises OSError, and ValueError for what is no text, or no JSON."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return Document(path, list(csv.DictReader(io.StringIO(text, newline=""))))
    try:
        return Document(path, json.loads(text))
    except json.JSONDecodeError:
        return Document(path, [json.loads(line) for line in text.split("\n") if line.strip()])


def fields(value: Any, *names: str) -> bool:
    """Is it an object that has all of these?"""
    return isinstance(value, dict) and all(name in value for name in names)
