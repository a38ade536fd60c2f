"""What is wrong with a file that was to be imported."""

from __future__ import annotations


class Broken(Exception):
    """``line`` is where, from 1, None where it is no matter of lines; ``what`` goes on from that.

    A sentence is made of both: "Line 3 is longer than 10 bytes."
    """

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.line = what, line

    @property
    def sentence(self) -> str:
        where = "The file" if self.line is None else f"Line {self.line}"
        return f"{where} {self.what}."
