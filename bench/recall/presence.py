"""Is a turn in the text that was injected?  Pure.

A turn is there when at least 80 % of its 5-token shingles are (words; Chinese, Japanese and Korean
by the character), so that cut or reshaped turns count as long as nearly all of their words do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from bench.recall.people import Question

SHINGLE = 5
ENOUGH = 0.8
"""Share of a turn's shingles."""

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_SPEAKER = re.compile(r"[A-Z][\w'-]{1,20}: ")


class Injected:
    """The text that memory put into a prompt, ready to be looked into."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._shingles = {SHINGLE: shingles(self._tokens, SHINGLE)}

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def covers(self, text: str) -> float:
        """The share of a turn that is there, 0 to 1.  Its speaker's name does not count."""
        wanted = tokens(_SPEAKER.sub("", text, count=1) if _SPEAKER.match(text) else text)
        if not wanted:
            return 1.0
        size = min(SHINGLE, len(wanted))
        if size not in self._shingles:
            self._shingles[size] = shingles(self._tokens, size)
        own = shingles(wanted, size)
        return len(own & self._shingles[size]) / len(own)

    def recall(self, question: Question, texts: Mapping[str, str]) -> float:
        """The share of a question's evidence that is there."""
        there = [
            any(
                self.covers(question.spans.get(turn) or texts[turn]) >= ENOUGH
                for turn in alternatives.split("|")
            )
            for alternatives in question.evidence
        ]
        return sum(there) / len(there)


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())


def shingles(found: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(found[at : at + size]) for at in range(len(found) - size + 1)}
