"""A message's sentences in the user's own voice: what is quoted, pasted or played is blanked.

Blanks keep every character's place, so that a sentence can be given as it was said.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONG = 2_000
"""Characters; of a longer message only its first and last line can be the user's own words."""
LONGEST_SENTENCE = 500
"""Characters; who says how things shall be done says it in fewer."""
MOST_SENTENCES = 60

BLANK = "\0"

_QUOTED = re.compile(
    r'"[^"]{0,300}"|“[^”]{0,300}”|„[^“”]{0,300}[“”]|«[^»]{0,300}»|»[^«]{0,300}«'
    r"|「[^」]{0,300}」|『[^』]{0,300}』|(?<!\w)'[^'\n]{0,300}'(?!\w)"
)
_BLANKED = (
    re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"^[ \t]*(?:>|&gt;).*$", re.MULTILINE),
    re.compile(r"https?://\S+"),
    _QUOTED,
    # Forwarded and answered mail: all that follows its first header.
    re.compile(
        r"^[ \t]*(?:-{2,} ?(?:original|forwarded|ursprüngliche|mensaje|message)\b"
        r"|begin forwarded message|on .{1,80} wrote:|am .{1,80} schrieb|le .{1,80} a écrit"
        r"|el .{1,80} escribió|(?:from|von|de|da|от|من|发件人|寄件者|差出人|보낸 ?사람) ?[:：].*@)"
        r".*",
        re.MULTILINE | re.IGNORECASE | re.DOTALL,
    ),
    # "Translate this:" and the like: what follows is the material.
    re.compile(
        r"\b(?:translate|proof-?read|summari[sz]e|rewrite|rephrase|paraphrase|correct|edit"
        r"|übersetze?|korrigiere?|fasse|traduce|corrige|resume|traduis|résume|traduz|traduci"
        r"|переведи|исправь)\b[^\n:：]{0,80}[:：].*"
        r"|(?:翻译|翻譯|润色|潤色|总结|總結|改写|校对|翻訳|要約|添削|번역|요약|ترجم|لخص)"
        r"[^\n:：]{0,40}[:：].*",
        re.IGNORECASE | re.DOTALL,
    ),
)

_ITEM = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,3}[.)、]|[（(]\d{1,3}[)）])[ \t]*\S.*$", re.MULTILINE)
_LIST = re.compile(r"(?:[ \t]*\n{1,2}[ \t]*(?:[-*•–]|\d{1,3}[.)、])[ \t]*[^\n]+)+")
_FEW_ITEMS = 2
"""More list items than that were written with care, or pasted."""

_SPEAKER = re.compile(
    r"^(?:\[[^\]\n]{1,60}\]\s*)?"
    r"(?P<name>(?-i:[A-ZÀ-ÞА-Я])[\w.'’-]{0,20}(?: (?-i:[A-ZÀ-ÞА-Я])[\w.'’-]{0,20}){0,2}"
    r"|[一-鿿]{2,4}|[가-힣]{2,4}|[ァ-ヶー]{2,8})[:：]\s*",
    re.MULTILINE,
)
_DATE = re.compile(r"^\s*\[[^\]\n]{1,60}\]\s*")
_NO_NAMES = frozenset(
    [
        "mom",
        "mum",
        "dad",
        "mother",
        "father",
        "teacher",
        "boss",
        "coach",
        "doctor",
        "rule",
        "rules",
        "tip",
        "tips",
        "quote",
        "motto",
        "warning",
        "step",
        "example",
        "lesson",
        "he",
        "she",
        "they",
        "妈妈",
        "爸爸",
        "老师",
        "老板",
        "规则",
        "提示",
        "名言",
        "他说",
        "她说",
    ]
)

# A part that is set up or played: neither is how the user wants things done elsewhere.
_ROLE_PLAY = re.compile(
    r"^\s*\*[^*\s][^*\n]{2,80}\*(?!\*)"
    r"|^\s*(?:you are (?:an?|the|now)\b|act as\b|pretend\b|imagine you\b|let's role-?play"
    r"|du bist (?:ein|jetzt)|eres una?\b|tu es une?\b|ты\s*[—-]\s"
    r"|你是一|假设你|扮演|あなたは.{1,20}です)",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?:(?<=[.!?…؟])(?<!e\.g\.)(?<!i\.e\.)(?<!z\.B\.)(?<!vs\.)(?<!\bDr\.)(?<!\bMr\.))\s+"
    r"|(?<=[。！？])|\n+"
)


class Sentence(NamedTuple):
    """A sentence: its place in the message, and its words with what is not the user's blanked."""

    start: int
    end: int
    words: str


class Voice(NamedTuple):
    """A piece of a message as it was written, and its sentences."""

    text: str
    sentences: tuple[Sentence, ...]


def end_with_list(text: str, end: int) -> int:
    """Where a sentence ends that may announce a list ("From now on:"), with what it announces."""
    items = _LIST.match(text, end) if text[end - 1] in ":：" else None
    return items.end() if items and items.end() - end <= LONGEST_SENTENCE else end


def voices(text: str) -> tuple[Voice, ...]:
    """The pieces of a message that can be the user's own words.  Time is bounded for any text."""
    if _ROLE_PLAY.search(_unlabelled(text[:LONG])):
        return ()
    if len(text) <= LONG:
        return (_voice(text),)
    first, last = text[:LONG].strip().split("\n")[0], text[-LONG:].strip().split("\n")[-1]
    return tuple(_voice(line) for line in (first, last) if len(line) < LONG // 2)


def _unlabelled(text: str) -> str:
    return text[_label(text) :]


def _label(text: str) -> int:
    """The length of a leading date and speaker's name, as chat logs write them."""
    match = _SPEAKER.match(text)
    if match and not _foreign(text):
        return match.end()
    date = _DATE.match(text)
    return date.end() if date else 0


def _voice(text: str) -> Voice:
    label = _label(text)
    words = BLANK * label + text[label:].replace("’", "'")
    for pattern in _BLANKED:
        words = pattern.sub(_blank, words)
    words = _without_lists(_without_transcript(_without_labelled(words)))
    return Voice(text, _sentences(words))


def _blank(match: re.Match[str]) -> str:
    return BLANK * len(match[0])


def _without_labelled(words: str) -> str:
    """Lines with a label before them that is nobody who speaks here ("Rule:", "老师说：")."""
    lines = words.split("\n")
    return "\n".join(BLANK * len(line) if _foreign(line) else line for line in lines)


def _foreign(line: str) -> bool:
    match = _SPEAKER.match(line)
    return bool(match and (match["name"].lower() in _NO_NAMES or match["name"][-1] in "说說道曰"))


def _without_transcript(words: str) -> str:
    """Lines of several speakers are a recorded talk."""
    names = {m["name"] for m in _SPEAKER.finditer(words)}
    return "" if len(names) > 1 else words


def _without_lists(words: str) -> str:
    items = list(_ITEM.finditer(words))
    return _ITEM.sub(_blank, words) if len(items) > _FEW_ITEMS else words


def _sentences(words: str) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    start = 0
    for end, after in [*(m.span() for m in _END.finditer(words)), (len(words), len(words))]:
        sentence = _trimmed(words, start, end)
        if sentence.words.strip(BLANK):
            found.append(sentence)
        start = after
    return tuple(s for s in found if len(s.words) <= LONGEST_SENTENCE)[:MOST_SENTENCES]


def _trimmed(words: str, start: int, end: int) -> Sentence:
    """A sentence without white space around it, and without what is blanked before it."""
    part = words[start:end]
    start += len(part) - len(part.lstrip(BLANK + " \t\r"))
    part = words[start:end].rstrip()
    return Sentence(start, start + len(part), part)
