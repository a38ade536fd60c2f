"""What of a message is not its writer's own words: quoted, forwarded, pasted.  Pure, linear time.

Found by form alone: fences, quoted lines, mail headers, recorded talks, long quotations, what a
task is about ("Translate this: ...").  Short quotations stay: names and titles are written so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from proxy.learning.lesson import Span

QUOTATION = 80
"""Characters of a quotation that is more than a name or a title."""

FEW_LINES = 3
"""A recorded talk has at least so many lines with a speaker before them."""

_FENCE = re.compile(r"[ \t]*(```+|~~~+|\"\"\"|''')|[ \t]*<(\w{1,30})(?: [^>\n]{0,200})?>[ \t]*\Z")
_QUOTED_LINE = re.compile(r"[ \t]*(?:>|&gt;)")
_MAIL = re.compile(
    r"[ \t]*(?:-{2,} ?(?:original|forwarded|ursprüngliche|weitergeleitete|mensaje|message)\b"
    r"|begin forwarded message|anfang der weitergeleiteten|on .{1,80} wrote:|am .{1,80} schrieb"
    r"|le .{1,80} a écrit|el .{1,80} escribió|il .{1,80} ha scritto"
    r"|(?:from|von|de|da|от|发件人|寄件者|差出人|보낸 ?사람) ?[:：].{0,200}@)",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\W{0,3}(?:(?:please|kindly|can you|could you|bitte|por favor|s'il te plaît|请|帮我)[ ,]*)*"
    r"(?:(?:translate|proof-?read|summari[sz]e|rewrite|rephrase|paraphrase|analy[sz]e|review"
    r"|classify|übersetze?|korrigiere?|fasse|traduce|corrige|resume|traduis|résume|traduz|traduci"
    r"|переведи|исправь)\b|翻译|翻譯|润色|潤色|总结|總結|改写|校对|翻訳|要約|添削|번역|요약)"
    r"[^\n:：]{0,80}[:：]",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,40}\][ \t]*)?"
    r"(?P<name>[^\W\d_][\w.'’-]{0,20}(?: [\w.'’-]{1,20}){0,2})[:：]"
)
_ROLE_NAMES = """
user assistant human ai bot system chatgpt gpt claude gemini model customer agent interviewer
benutzer assistent usuario asistente utilisateur assistante 用户 助手 用戶 ユーザー アシスタント
"""
_ROLES = frozenset(_ROLE_NAMES.split())
_QUOTATIONS = (
    re.compile(r'"([^"\n]*)"'),
    re.compile("“([^“”]*)”"),
    re.compile("„([^„“”]*)[“”]"),
    re.compile("«([^«»]*)»"),
    re.compile("「([^「」]*)」"),
)

Line = tuple[int, str]
"""Where a line begins, and the line."""


def pasted(text: str) -> tuple[Span, ...]:
    """Where a message is not its writer's own words, in order, without overlaps."""
    lines = list(_lines(text))
    found = [
        *_fenced(lines, len(text)),
        *_quoted(lines),
        *_mail(lines, len(text)),
        *_task(text),
        *_talk(lines, len(text)),
        *_quotations(text),
    ]
    return _merged(found)


def _lines(text: str) -> Iterator[Line]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _fenced(lines: Iterable[Line], end: int) -> Iterator[Span]:
    """From a fence or a tag on a line of its own to its counterpart, or to the end."""
    start, closing = 0, ""
    for at, line in lines:
        if closing:
            if line.strip().startswith(closing):
                yield Span(start, at + len(line))
                closing = ""
        elif found := _FENCE.match(line):
            start, closing = at, found[1] or f"</{found[2]}>"
            if found[1] and line.count(found[1]) > 1:  # opened and closed in one line
                yield Span(at, at + len(line))
                closing = ""
    if closing and not closing.startswith("<"):
        yield Span(start, end)


def _quoted(lines: Iterable[Line]) -> Iterator[Span]:
    for at, line in lines:
        if _QUOTED_LINE.match(line):
            yield Span(at, at + len(line))


def _mail(lines: Iterable[Line], end: int) -> Iterator[Span]:
    """All that follows the first header of a forwarded or answered mail."""
    first = next((at for at, line in lines if _MAIL.match(line)), None)
    if first is not None:
        yield Span(first, end)


def _task(text: str) -> Iterator[Span]:
    """What a task at the beginning of a message is about."""
    found = _TASK.match(text)
    if found:
        yield Span(found.end(), len(text))


def _talk(lines: list[Line], end: int) -> Iterator[Span]:
    """A recorded talk, to the end of its last speaker's paragraph.

    Lines with labels are one if two speakers take turns; what is labelled once each is a list.
    """
    labelled = [
        (at, found["name"].lower()) for at, line in lines if (found := _SPEAKER.match(line))
    ]
    names = Counter(name for _, name in labelled)
    turns = len(labelled) >= FEW_LINES and max(names.values()) > 1
    if len(names) < 2 or not (turns or len(_ROLES & names.keys()) > 1):
        return
    first, last = labelled[0][0], labelled[-1][0]
    blank = next((at for at, line in lines if at > last and not line.strip()), end)
    yield Span(first, blank)


def _quotations(text: str) -> Iterator[Span]:
    for pattern in _QUOTATIONS:
        for found in pattern.finditer(text):
            if len(found[1]) >= QUOTATION:
                yield Span(*found.span())


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    kept: list[Span] = []
    for span in sorted(spans):
        if kept and span.start <= kept[-1].end:
            kept[-1] = Span(kept[-1].start, max(span.end, kept[-1].end))
        elif span.end > span.start:
            kept.append(span)
    return tuple(kept)
