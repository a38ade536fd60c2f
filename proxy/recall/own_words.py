"""Separates the author's own words in a message from quoted, pasted and role-played text.  Pure.

By form alone.  ``pasted_spans`` returns what is clearly another's; short quotations are not, since
names and titles are quoted too.  ``own_texts`` returns only sentences that are surely the author's:
it leaves more out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.recall.lexicon.loader import any_of, lazy_pattern, phrase_pattern, vocabulary

BLANK = "\0"
"""Replaces a character that is not the author's own."""
MIN_QUOTATION = 80
"""Characters; a shorter quotation may be a name or a title."""
MIN_SPEAKER_LINES = 3
"""A transcript has at least so many lines that begin with a speaker."""
LONG_MESSAGE = 2_000
"""Characters; of a longer message only the first and the last line count as the user's own."""
MAX_SENTENCE_CHARACTERS = 500
"""Characters; longer sentences are left out."""
MAX_SENTENCES = 60
_MAX_LIST_ITEMS = 2
"""Longer lists are left out: they were written with care, or pasted."""

_FENCE = re.compile(
    r"[ \t]*(?P<fence>```+|~~~+|\"\"\"|''')|[ \t]*<(?P<tag>[\w-]{1,30})(?: [^>\n]{0,200})?>[ \t]*\Z"
    r"|[^`\n]*(?P<within>```+)"
)
_QUOTED_LINE = re.compile(r"[ \t]*(?:>|&gt;)")
_MAIL = lazy_pattern(
    rf"[ \t]*(?:{any_of(lambda each: each.own_words.mail)}"
    rf"|{any_of(lambda each: each.own_words.mail_from)} ?[:：].{{0,200}}@)",
    re.IGNORECASE,
)
_PLEASE = any_of(lambda each: each.own_words.please)
_TASK = rf"{phrase_pattern(lambda each: each.own_words.tasks)}[^\n:：]{{0,80}}[:：]"
_BEGINS_WITH_TASK = lazy_pattern(rf"\W{{0,3}}(?:{_PLEASE}[ ,]*)*{_TASK}", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"\n]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|「[^「」]*」|『[^『』]*』')

_SPEAKER = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,60}\]\s*)?"
    r"(?P<name>[^\W\d_][\w.'’-]{0,20}(?: [\w.'’-]{1,20}){0,2})[:：]\s*"
)
_NAME = re.compile(
    r"[A-ZÀ-ÞА-Я][\w.'’-]{0,20}(?: [A-ZÀ-ÞА-Я][\w.'’-]{0,20}){0,2}"
    r"|[一-鿿]{2,4}|[가-힣]{2,4}|[ァ-ヶー]{2,8}"
)
_ANNOUNCES = re.compile(r"[:：]\s*\Z")
_DATE = re.compile(r"\s*\[[^\]\n]{1,60}\]\s*")
_ROLES = frozenset(vocabulary(lambda each: each.own_words.roles))
_NO_SPEAKERS = frozenset(vocabulary(lambda each: each.own_words.no_speakers))
_SAYS = "".join(vocabulary(lambda each: each.own_words.says))

_LESS_SURELY_OTHERS = (
    re.compile(r"`[^`\n]*`"),
    re.compile(r"https?://\S+"),
    _QUOTED,
    re.compile(r"(?<!\w)'[^'\n]{0,300}(?:(?<=\w)'(?=\w)[^'\n]{0,300}){0,3}'(?!\w)"),
)
_TASK_ON = lazy_pattern(rf"{_TASK}.*", re.IGNORECASE | re.DOTALL)
_ITEM = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,3}[.)、]|[（(]\d{1,3}[)）])[ \t]*\S.*$", re.MULTILINE)
_LIST = re.compile(r"(?:[ \t]*\n{1,2}[ \t]*(?:[-*•–]|\d{1,3}[.)、])[ \t]*[^\n]+)+")
# The setting of a role play, or a line in it, which tells nothing about other conversations.
_ROLE_PLAY = lazy_pattern(
    rf"\s*(?:\*[^*\s][^*\n]{{2,80}}\*(?!\*)|{any_of(lambda each: each.own_words.role_play)})",
    re.IGNORECASE,
)
_ABBREVIATED = "".join(
    rf"(?<!\b{re.escape(word)})" for word in vocabulary(lambda each: each.own_words.abbreviations)
)
_END = re.compile(rf"(?<=[.!?…؟]){_ABBREVIATED}\s+|(?<=[。！？])|\n+")

Line = tuple[int, str]
"""The offset of a line, and the line."""


class Span(NamedTuple):
    """Characters from ``start`` up to, not including, ``end``."""

    start: int
    end: int


class Sentence(NamedTuple):
    """A sentence: its place in the message, and its text with others' words blanked."""

    start: int
    end: int
    words: str


class OwnText(NamedTuple):
    """A part of a message that may be the user's own words, and its sentences."""

    text: str
    sentences: tuple[Sentence, ...]


def blank_out(text: str, spans: Iterable[Span]) -> str:
    """The text with these spans replaced by ``BLANK``, character by character."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], BLANK * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


def pasted_spans(text: str) -> tuple[Span, ...]:
    """The spans that are not the author's own words, in order, without overlaps, in linear time."""
    lines = list(_lines(text))
    found = [
        *_fenced(lines, len(text)),
        *(Span(at, at + len(line)) for at, line in lines if _QUOTED_LINE.match(line)),
        *_mail(lines, len(text)),
        *_task(text),
        *_talk(lines, len(text)),
        *_quotations(text),
    ]
    return _merged(found)


def _quotations(text: str) -> Iterator[Span]:
    """Long quotations, with their marks."""
    found = (Span(*each.span()) for each in _QUOTED.finditer(text))
    return (each for each in found if each.end - each.start - 2 >= MIN_QUOTATION)


def _lines(text: str) -> Iterator[Line]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def _fenced(lines: Iterable[Line], end: int) -> Iterator[Span]:
    """From a fence, or a tag on a line of its own, to its counterpart; an open fence to the end."""
    start, closing = 0, ""
    for at, line in lines:
        if closing and closing in line:
            yield Span(start, at + len(line))
            closing = ""
        elif not closing and (found := _FENCE.match(line)):
            fence = found["fence"] or found["within"]
            start = at + max(0, found.start("within"))
            closing = fence or f"</{found['tag']}>"
            if fence and line.count(fence) > 1:  # opened and closed in one line
                yield Span(start, at + line.rindex(fence) + len(fence))
                closing = ""
    if closing and not closing.startswith("<"):
        yield Span(start, end)


def _mail(lines: Iterable[Line], end: int) -> Iterator[Span]:
    """Everything after the first header of a forwarded or answered mail."""
    first = next((at for at, line in lines if _MAIL.match(line)), None)
    if first is not None:
        yield Span(first, end)


def _task(text: str) -> Iterator[Span]:
    """The material of a task at the beginning of a message."""
    found = _BEGINS_WITH_TASK.match(text)
    if found:
        yield Span(found.end(), len(text))


def _talk(lines: list[Line], end: int) -> Iterator[Span]:
    """A transcript, to the end of its last speaker's paragraph.

    Lines with labels are one if two speakers take turns; if each label occurs once it is a list.
    """
    labelled = [
        (at, found["name"].lower()) for at, line in lines if (found := _SPEAKER.match(line))
    ]
    names = Counter(name for _, name in labelled)
    turns = len(labelled) >= MIN_SPEAKER_LINES and max(names.values()) > 1
    if len(names) < 2 or not (turns or len(_ROLES & names.keys()) > 1):
        return
    first, last = labelled[0][0], labelled[-1][0]
    blank = next((at for at, line in lines if at > last and not line.strip()), end)
    yield Span(first, blank)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        elif span.end > span.start:
            merged.append(span)
    return tuple(merged)


def end_with_list(text: str, end: int) -> int:
    """The end of a sentence, after the list that it announces, if any ("From now on:")."""
    items = _LIST.match(text, end) if text[end - 1] in ":：" else None
    return items.end() if items and items.end() - end <= MAX_SENTENCE_CHARACTERS else end


def own_texts(text: str) -> tuple[OwnText, ...]:
    """The parts of a message that may be the user's own words.  Time is bounded for any text."""
    if _ROLE_PLAY.match(text[:LONG_MESSAGE], _label_length(text[:LONG_MESSAGE])):
        return ()
    if len(text) <= LONG_MESSAGE:
        return (_own_text(text),)
    head, tail = text[:LONG_MESSAGE].strip(), text[-LONG_MESSAGE:].strip()
    first, last = head.split("\n")[0], tail.split("\n")[-1]
    return tuple(_own_text(line) for line in (first, last) if len(line) < LONG_MESSAGE // 2)


def _label_length(text: str) -> int:
    """The length of a leading date and speaker's name, as chat logs write them."""
    match = _speaker(text)
    if match and not _is_no_speaker(text):
        return match.end()
    date = _DATE.match(text)
    return date.end() if date else 0


def _own_text(text: str) -> OwnText:
    label = _label_length(text)
    words = BLANK * label + blank_out(text, pasted_spans(text))[label:].replace("’", "'")
    for pattern in _LESS_SURELY_OTHERS:
        words = pattern.sub(_blank, words)
    if ":" in words or "：" in words:  # a fast test before the slowest pattern
        words = _TASK_ON.sub(_blank, words)
    words = _without_lists(_without_transcript(_without_labelled(words)))
    return OwnText(text, _sentences(words))


def _blank(match: re.Match[str]) -> str:
    return BLANK * len(match[0])


def _speaker(line: str) -> re.Match[str] | None:
    """The label of a line that can only be a name: "Anna: ", not "note: "."""
    match = _SPEAKER.match(line)
    return match if match and _NAME.fullmatch(match["name"]) else None


def speaker_of(text: str) -> str:
    """The name of the speaker with which a text begins ("Anna: hello"); "" if there is none."""
    match = _speaker(text)
    return match["name"] if match and not _is_no_speaker(text) else ""


def _without_labelled(words: str) -> str:
    """Blank lines whose label is no speaker of this conversation ("Rule: ...", "老师说：...").

    A label alone stays: it tells whose the lines below are.
    """
    return "\n".join(
        BLANK * len(line) if _is_no_speaker(line) and not _ANNOUNCES.search(line) else line
        for line in words.split("\n")
    )


def _is_no_speaker(line: str) -> bool:
    match = _speaker(line)
    return bool(match and (match["name"].lower() in _NO_SPEAKERS or match["name"][-1] in _SAYS))


def _without_transcript(words: str) -> str:
    """Blank everything if lines of several speakers are left: it is a transcript."""
    names = {found["name"] for line in words.split("\n") if (found := _speaker(line))}
    return "" if len(names) > 1 else words


def _without_lists(words: str) -> str:
    items = list(_ITEM.finditer(words))
    return _ITEM.sub(_blank, words) if len(items) > _MAX_LIST_ITEMS else words


def _sentences(words: str) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    start = 0
    for end, after in [*(m.span() for m in _END.finditer(words)), (len(words), len(words))]:
        sentence = _trimmed(words, start, end)
        if sentence.words.strip(BLANK):
            found.append(sentence)
        start = after
    return tuple(s for s in found if len(s.words) <= MAX_SENTENCE_CHARACTERS)[:MAX_SENTENCES]


def _trimmed(words: str, start: int, end: int) -> Sentence:
    """A sentence without white space around it, and without blanked characters before it."""
    part = words[start:end]
    start += len(part) - len(part.lstrip(BLANK + " \t\r"))
    part = words[start:end].rstrip()
    return Sentence(start, start + len(part), part)
