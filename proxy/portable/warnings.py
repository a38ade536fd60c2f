"""What people should know of an import that went well all the same."""

from __future__ import annotations

MOST = 100


class Warnings:
    """Sentences, each once, with the line where it was first true; at most ``MOST``."""

    def __init__(self) -> None:
        self._said: dict[str, int | None] = {}
        self._more = 0

    def add(self, what: str, line: int | None = None) -> None:
        if what in self._said:
            return
        if len(self._said) < MOST:
            self._said[what] = line
        else:
            self._more += 1

    @property
    def all(self) -> list[str]:
        said = [
            f"{what[:1].upper()}{what[1:]}" + (f" (line {line})." if line else ".")
            for what, line in self._said.items()
        ]
        return [*said, f"And {self._more} more."] if self._more else said
