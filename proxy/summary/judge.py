"""Is what a model has written a summary?  Pure.

Models chat: they apologise, greet, offer help, ask back, hand the prompt or the transcript back, or
write on and on.  What gives that away stands at the beginning, at the end and in the form; the
words themselves may well be in a summary.  Wrapping around a good one is taken off and not held
against it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from proxy.summary.chatty import asks_back, opens_like_chat, without_closing
from proxy.summary.lines import Count, well_formed
from proxy.summary.prompt import VARIABLE

Fault = Literal["empty", "too_long", "chatty", "role_lines", "echo"]

_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)

_WORD = (
    r"summary|zusammenfassung|r[ée]sum[ée]|resumen|resumo|riassunto|sommario|samenvatting|сводка|"
    r"резюме|краткое содержание|摘要|總結|总结|概要|要約|まとめ|요약"
)

_LEAD_IN = re.compile(
    # a line of its own that ends with a colon, or a heading
    rf"(?=[^\n]{{0,150}}(?:{_WORD})|(?:sure|certainly|of course|here)\b)[^\n]{{0,150}}"
    rf"[:：](?:\*\*|__)?[ \t]*\n+"
    rf"|(?:#{{1,6}} |\*\*|__)(?:[\w\u0080-\uffff]+ ){{0,3}}(?:{_WORD})"
    rf"(?: [\w\u0080-\uffff]+){{0,4}}(?:\*\*|__)?[ \t]*\n+"
    # a label before the text
    rf"|(?:\*\*|__)?(?:(?:the|new|updated|final|running|current|neue|aktualisierte|nouveau|nuevo|"
    rf"nueva) ){{0,3}}(?:{_WORD})(?:\*\*|__)?[ \t]?[:：](?:\*\*|__)?[ \t]*",
    re.IGNORECASE,
)

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(?P<inner>.*?)\n?```", re.DOTALL)
_TAGS = re.compile(r"<(?P<tag>\w*summary\w*)>(?P<inner>.*)</(?P=tag)>", re.DOTALL | re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}

_ROLE_LINE = re.compile(
    r"\W{0,2}(?:human|ai|tool|user|assistant|system)(?: \([^)\n]{1,100}\))?\W{0,2}[:：]"
    r"|AI calls \w",
    re.IGNORECASE,
)

_SHORTEST_ECHO = 30
"""Characters; shorter lines of a template may well be said in a summary too."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The summary without its wrapping, and what is wrong with it; None: nothing."""

    text: str
    fault: Fault | None


def judge(written: str, template: str, max_tokens: int, count: Count) -> Verdict:
    """``written`` is what the model has answered to the filled ``template``."""
    text = unwrapped(well_formed(written))
    return Verdict(text, _fault(text, template, max_tokens, count))


def unwrapped(text: str) -> str:
    """The text without thoughts, lead-in, fences, tags and quotes around it, and a kind closing."""
    text = _THOUGHT.sub("", text, count=1).strip()
    while True:
        inner = without_closing(_unquoted(_LEAD_IN.sub("", text, count=1) if _led(text) else text))
        inner = inner.strip()
        if inner == text:
            return text
        text = inner


def _led(text: str) -> bool:
    return _LEAD_IN.match(text) is not None


def _unquoted(text: str) -> str:
    for form in (_FENCE, _TAGS):
        if (whole := form.fullmatch(text)) is not None:
            return whole["inner"]
    last = _QUOTES.get(text[:1])
    inner = text[1:-1]
    if last and len(text) > 1 and text.endswith(last) and not {text[0], last} & set(inner):
        return inner
    return text


def _fault(text: str, template: str, max_tokens: int, count: Count) -> Fault | None:
    if not re.search(r"\w", text):
        return "empty"
    if _echoes(text, template):
        return "echo"
    if all(_ROLE_LINE.match(line) for line in text.splitlines() if line.strip()):
        return "role_lines"
    if opens_like_chat(text) or asks_back(text):
        return "chatty"
    return "too_long" if count(text) > max_tokens else None


def _echoes(text: str, template: str) -> bool:
    """Does it hold a sentence of the operator's own?"""
    said = " ".join(text.split())
    if VARIABLE.search(said):
        return True
    fixed = (" ".join(line.split()) for line in VARIABLE.sub("\n", template).splitlines())
    return any(len(line) >= _SHORTEST_ECHO and line in said for line in fixed)
