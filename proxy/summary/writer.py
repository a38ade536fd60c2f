"""Has a model write a summary, part by part, and checks each answer.

Models chat: they apologise, greet, offer help, ask back, hand the prompt or the transcript back, or
write on and on.  What gives that away stands at the beginning, at the end and in the form; the
words themselves may well be in a summary.  Wrapping around a good one is not held against it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from proxy.background.completion import Assignment, Completer, Denied, Refused, assignment
from proxy.chat.jsontext import well_formed
from proxy.memory.model import SessionKey
from proxy.recall.lexicon.loader import alternation, any_of, lazy_pattern, patterns, phrase_pattern
from proxy.settings.learned import SummarySettings
from proxy.summary.attempts import UnstoredSummaries, WrittenSummary
from proxy.summary.lines import NO_SUMMARY, VARIABLE, Count, cut_position, fill_template

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

_EMPTY = re.compile(rf"\W*(?:{NO_SUMMARY.strip('()')}\W*)?\Z", re.IGNORECASE)
"""No word, or the one that stood for the summary where there was none yet."""

_OPENING = lazy_pattern(any_of(lambda each: each.chat.openings), re.IGNORECASE)
_SECOND_PERSON = lazy_pattern(phrase_pattern(lambda each: each.chat.second_person), re.IGNORECASE)
_LAST_SENTENCE = re.compile(r"[^.!?。！？\n]*[?？]\Z")
_REPORTED = re.compile(r"[:：\"“”„«»「」『』]")

_MAX_QUESTION = 300
"""Characters."""

_WORD = any_of(lambda each: each.summary.names)
_BEFORE = alternation(
    (
        *(rf"{word} " for word in patterns(lambda each: each.summary.before.words)),
        *patterns(lambda each: each.summary.before.anywhere),
    )
)
"""Words that stand before it in a title.  Others make a sentence: "Anna asked for a summary:"."""
_CONSENT = rf"(?:{any_of(lambda each: each.summary.consent)}(?: thing)? ?[!.,，！。、]\s*)?"
_HERE = any_of(lambda each: each.summary.here)

_BOLD = r"(?:\*\*|__)?"
_COLON = rf"{_BOLD}[ \u00a0]?[:：]{_BOLD}"
_TITLE = rf"{_BEFORE}{{0,4}}{_WORD}"
_AFTER = r"(?: [^\s:：]+){0,6}"

_LEAD_IN = lazy_pattern(
    rf"(?:#{{1,6}} |\*\*|__)?{_CONSENT}(?:"
    rf"{_HERE}[^\n:：]{{0,80}}{_WORD}[^\n:：]{{0,60}}{_COLON}\s*"
    rf"|{_HERE}[^\n]{{0,120}}{_COLON}[ \t]*\n+"
    rf"|{_TITLE}{_AFTER}{_COLON}[ \t]*\n+"
    rf"|{_TITLE}{_COLON}\s*)"
    rf"|(?:#{{1,6}} |\*\*|__){_TITLE}{_AFTER}{_BOLD}[ \t]*\n+",
    re.IGNORECASE,
)

_CLOSING = lazy_pattern(rf"[*_(]*{any_of(lambda each: each.summary.closings)}", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?```", re.DOTALL)
_TAGS = re.compile(r"<(?P<tag>\w*summary\w*)>(?P<inner>.*)</(?P=tag)>", re.DOTALL | re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}

_LAYERS = 5


class CheckedSummary(msgspec.Struct, frozen=True):
    """The text without its wrapping, its tokens, and what it is instead of a summary, or None."""

    text: str
    tokens: int
    fault: Fault | None


def check_summary(written: str, template: str, max_tokens: int, count: Count) -> CheckedSummary:
    """``written`` is what the model has answered to the filled ``template``."""
    text = without_wrapping(well_formed(written))
    tokens = count(text)
    too_long: Fault | None = "too_long" if tokens > max_tokens else None
    return CheckedSummary(text, tokens, _fault(text, template) or too_long)


def _fault(text: str, template: str) -> Fault | None:
    if _EMPTY.match(text):
        return "empty"
    if _echoes(text, template):
        return "echo"
    if _is_transcript(text):
        return "role_lines"
    return "chatty" if begins_like_chat(text) or ends_with_question(text) else None


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


def begins_like_chat(text: str) -> bool:
    """Does it begin as answers to people begin: an apology, a greeting, an offer, a question?"""
    return _OPENING.match(text.lstrip("*_# ").replace("’", "'")) is not None


def ends_with_question(text: str) -> bool:
    """Does it end with a question to the reader, one that it does not report?"""
    last = _LAST_SENTENCE.search(text.rstrip("*_ \n")[-_MAX_QUESTION:])
    return (
        last is not None
        and _REPORTED.search(last[0]) is None
        and _SECOND_PERSON.search(last[0]) is not None
    )


def without_wrapping(text: str) -> str:
    """The text without lead-in, fence, tags and quotes around it, and a kind closing."""
    text = text.strip()
    for _ in range(_LAYERS):
        inner = _without_closing(_unquoted(_without_lead_in(text))).strip()
        if inner == text:
            break
        text = inner
    return text


def _without_lead_in(text: str) -> str:
    lead_in = _LEAD_IN.match(text)
    return text[lead_in.end() :] if lead_in else text


def _unquoted(text: str) -> str:
    if (fenced := _FENCE.fullmatch(text)) is not None:
        return fenced[1]
    if (tagged := _TAGS.fullmatch(text)) is not None:
        return tagged["inner"]
    last, inner = _QUOTES.get(text[:1]), text[1:-1]
    if last and len(text) > 1 and text.endswith(last) and not {text[0], last} & set(inner):
        return inner
    return text


def _without_closing(text: str) -> str:
    """An offer of more on the last line is no part of it."""
    body, line_feed, last = text.rpartition("\n")
    return body if line_feed and _CLOSING.match(last) else text


logger = logging.getLogger(__name__)

ATTEMPTS = 2
"""Requests for one part: the model does not always write a summary."""


class SummaryRequest(msgspec.Struct, frozen=True):
    """The tenant that pays for a summary, its settings, and the model of the session."""

    tenant: str
    settings: SummarySettings
    session_model: str | None = None

    def assignment(self, text: str = "") -> Assignment:
        return assignment(self.tenant, "summary", self.settings, text, self.session_model)


LEFT_OUT = "[left out]"
"""Replaces text that the model's API refuses."""

MIN_SPLIT_CHARACTERS = 200
"""A line of at most so many characters is not split."""

MAX_HALVINGS = 4
"""How often refused text is split in half; each time costs a request or two."""


class _NoSummary(Exception):
    """The model has answered, but not with a summary."""


class _Continuation(NamedTuple):
    """A summary that is continued: its session, the request, and the text so far."""

    key: SessionKey
    request: SummaryRequest
    base: str

    def assignment(self, summary: WrittenSummary | None, part: str) -> Assignment:
        text = summary.text if summary else self.base
        return self.request.assignment(fill_template(self.request.settings, text, part))


class Writer:
    """``count`` gives the tokens of a text, on other threads too.  Answers are kept in
    ``unfinished`` until the caller has stored the summary.
    """

    def __init__(self, completer: Completer, count: Count, unfinished: UnstoredSummaries) -> None:
        self._completer, self._count, self._unfinished = completer, count, unfinished

    def is_ready(self, request: SummaryRequest) -> bool:
        return self._completer.is_ready(request.assignment())

    async def write(
        self, key: SessionKey, request: SummaryRequest, base: str, parts: Sequence[str]
    ) -> WrittenSummary | None:
        """The summary ``base`` with all the parts folded in, one request for each.

        None if the model does not write a summary.  Raises CompletionError, StoreError.
        """
        continuation = _Continuation(key, request, base)
        summary: WrittenSummary | None = None
        try:
            for part in parts:
                summary = await self._fold_or_split(continuation, summary, part, MAX_HALVINGS)
        except _NoSummary:
            return None
        return summary

    async def _fold_or_split(
        self, continuation: _Continuation, summary: WrittenSummary | None, part: str, halvings: int
    ) -> WrittenSummary | None:
        """Fold in a part; if it is refused, its halves, and so on; what is refused is left out."""
        try:
            return await self._fold(continuation, summary, part)
        except Denied:
            raise
        except Refused:
            halves = _split_in_half(part) if halvings else ()
        for half in halves:
            summary = await self._fold_or_split(continuation, summary, half, halvings - 1)
        return summary if halves else await self._leave_out(continuation, summary)

    async def _leave_out(
        self, continuation: _Continuation, summary: WrittenSummary | None
    ) -> WrittenSummary | None:
        """Fold in ``LEFT_OUT``.  Raises Refused if the request is refused with this too."""
        with suppress(_NoSummary):
            summary = await self._fold(continuation, summary, LEFT_OUT)
        logger.warning("a summary leaves out what the model's API refuses to read")
        return summary

    async def _fold(
        self, continuation: _Continuation, summary: WrittenSummary | None, part: str
    ) -> WrittenSummary:
        asked = continuation.assignment(summary, part)
        written = self._unfinished.find(continuation.key, asked)
        if written is None:
            written = await self._write_part(asked, continuation.request.settings)
            self._unfinished.put(continuation.key, asked, written)
        return written

    async def _write_part(self, asked: Assignment, settings: SummarySettings) -> WrittenSummary:
        for _ in range(ATTEMPTS):
            completed = await self._completer.complete(asked)
            verdict = await asyncio.to_thread(
                check_summary, completed.text, settings.prompt, settings.max_tokens, self._count
            )
            fault = "cut off" if completed.is_truncated else verdict.fault
            if fault is None:
                return WrittenSummary(verdict.text, verdict.tokens, completed.model)
            logger.warning("what a model wrote is no summary: %s", fault)
        raise _NoSummary


def _split_in_half(part: str) -> Sequence[str]:
    """The halves of several lines or of one long line; empty for other text."""
    lines = part.split("\n")
    if middle := len(lines) // 2:
        return "\n".join(lines[:middle]), "\n".join(lines[middle:])
    at = cut_position(part, len(part) // 2) if len(part) > MIN_SPLIT_CHARACTERS else 0
    return (part[:at], part[at:]) if at else ()
