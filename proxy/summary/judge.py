"""Is what a model has written a summary?  Pure.

Models chat: they apologise, greet, offer help, ask back, hand the prompt or the transcript back, or
write on and on.  What gives that away stands at the beginning, at the end and in the form; the
words themselves may well be in a summary.  Wrapping around a good one is not held against it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from proxy.summary.chatty import asks_back, opens_like_chat
from proxy.summary.lines import Count, well_formed
from proxy.summary.prompt import VARIABLE
from proxy.summary.wrapping import unwrapped

Fault = Literal["empty", "echo", "role_lines", "chatty", "too_long"]

_ROLE_LINE = re.compile(
    r"\W{0,3}(?:human|ai|tool|user|assistant|system)(?: \([^)\n]{1,100}\))?\W{0,3}[:：]"
    r"|AI calls \w",
    re.IGNORECASE,
)
_TRANSCRIPT = re.compile(
    r"^(?:Human|AI|Tool|User|Assistant)(?: \([^)\n]{1,100}\))?(?::| calls )", re.MULTILINE
)

_HEADING = re.compile(r"^([^\n{}]{8,})\n+\{(?:summary|new_lines)\}", re.MULTILINE)
"""What a template has above the summary and the lines, which is no heading of a summary."""

_LONG = 30
"""Characters; shorter lines of a template may well be said in a summary too."""

_NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """The text without its wrapping, its tokens, and what it is instead of a summary, or None."""

    text: str
    tokens: int
    fault: Fault | None


def judge(written: str, template: str, max_tokens: int, count: Count) -> Verdict:
    """``written`` is what the model has answered to the filled ``template``."""
    text = unwrapped(well_formed(written))
    tokens = count(text)
    return Verdict(text, tokens, _fault(text, template) or _length(tokens, max_tokens))


def _length(tokens: int, max_tokens: int) -> Fault | None:
    return "too_long" if tokens > max_tokens else None


def _fault(text: str, template: str) -> Fault | None:
    if not re.search(r"\w", text):
        return "empty"
    if _echoes(text, template):
        return "echo"
    if _is_transcript(text):
        return "role_lines"
    return "chatty" if opens_like_chat(text) or asks_back(text) else None


def _is_transcript(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(_TRANSCRIPT.findall(text)) > 1 or all(map(_ROLE_LINE.match, lines))


def _echoes(text: str, template: str) -> bool:
    """Are these the operator's words: the first, the headings, or hardly any others?

    A template may well give headings of a summary, which is then right to have them.
    """
    fixed = [_flat(line) for line in VARIABLE.sub("\n", template.strip()).splitlines()]
    said, start = _flat(text), fixed[0][: 2 * _LONG]
    if len(start) >= _LONG and start in said:
        return True
    if {line.strip() for line in text.splitlines()}.intersection(_HEADING.findall(template)):
        return True
    echoed = sum(len(line) for line in fixed if len(line) >= _LONG and line in said)
    return echoed > _NEARLY_ALL * len(said)


def _flat(text: str) -> str:
    return " ".join(text.split())
