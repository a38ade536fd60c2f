"""Stored messages as lines that a model can read: who said what, as text.  Pure.

    Human: What is the weather in Rome?
    AI calls weather({"city":"Rome"})
    Tool: 31 degrees
    AI (Marvin): Hot. [incomplete]

All text is kept as it was said.  Media are named and never quoted: base64 is no text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from proxy.chat.jsontext import well_formed
from proxy.memory.model import Card
from proxy.settings.learned import SummarySettings

Count = Callable[[str], int]
"""Tokens of a text."""

Decode = Callable[[bytes], object]
"""The value of a JSON text.  Raises ValueError and RecursionError."""

_SPEAKERS = {
    "user": "Human",
    "assistant": "AI",
    "tool": "Tool",
    "function": "Tool",
    "system": "System",
    "developer": "System",
}

_TEXTS = ("text", "refusal")
"""Fields of content parts that are text."""

_MEDIA = ("image", "audio", "video", "file")

_DATA_URL = re.compile(r"data:([a-z]+)/[\w.+-]*(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_%-]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{400,}={0,2}")
_SHOWS_BASE64 = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])(?=.*[+/])", re.DOTALL)

_CHARACTERS = 6
"""A token seldom has more characters; a piece has no more than so many for each of its tokens."""

_PLACES = ("\n\n", "\n", ". ", "。", " ")
"""Where a long text is cut, the best first."""


class TranscriptLine(NamedTuple):
    """What one message says or does: ``AI``, ``: ``, ``Hello``."""

    speaker: str
    link: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}{self.link}{self.text}"


def day_line(at: float) -> TranscriptLine:
    """What stands above what was said on a day (UTC): ``[Monday 2023-05-08]``."""
    return TranscriptLine("", "", f"[{datetime.fromtimestamp(at, UTC):%A %Y-%m-%d}]")


def with_day_lines(
    turns: Iterable[tuple[float, list[TranscriptLine]]],
) -> Iterator[list[TranscriptLine]]:
    """Turns, each with its time (Unix seconds), with its day above each that begins another."""
    before: TranscriptLine | None = None
    for at, lines in turns:
        day = day_line(at)
        yield lines if day == before or not lines else [day, *lines]
        before = day if lines else before


def lines_of(card: Card, body: bytes, decode: Decode) -> list[TranscriptLine]:
    """The lines of a stored message: none for a blank one, and one for each call that it makes."""
    if card.blank:
        return []
    try:
        message = decode(body)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return [TranscriptLine(_speaker(card.role, None), ": ", "[unreadable]")]
    speaker = _speaker(card.role, message.get("name"))
    lines = [TranscriptLine(speaker, " calls ", call) for call in _calls(message)]
    said = _message_text(message)
    if card.incomplete:
        said = f"{said} [incomplete]".lstrip()
    if said or not lines:
        lines.insert(0, TranscriptLine(speaker, ": ", said))
    return [TranscriptLine(*map(well_formed, line)) for line in lines]


def split_line(line: TranscriptLine, most: int, count: Count) -> Iterator[str]:
    """The line in pieces of at most ``most`` tokens; each but the first says that it goes on.

    A piece is never less than a character, whatever that costs.
    """
    head, rest = f"{line.speaker}{line.link}", line.text
    again = f"{line.speaker} (continued): "
    while True:
        piece = _first_tokens(rest, max(1, most - count(head)), count)
        yield head + piece
        rest = rest[len(piece) :]
        if not rest:
            return
        head = again


def _speaker(role: str, name: object) -> str:
    speaker = _SPEAKERS.get(role, role)
    return f"{speaker} ({name[:100]})" if isinstance(name, str) and name else speaker


def _first_tokens(text: str, most: int, count: Count) -> str:
    """As much of a text as fits into so many tokens, cut where it hurts least."""
    size = min(len(text), most * _CHARACTERS)
    while size > 1 and (tokens := count(text[:size])) > most:
        size = max(1, min(size - 1, size * most // tokens))
    return text[: cut_position(text, size)]


def cut_position(text: str, size: int) -> int:
    """Where a text is cut so that it has at most so many characters, where it hurts least."""
    if size >= len(text):
        return size
    for place in _PLACES:
        at = text.rfind(place, size // 2, size)
        if at >= 0:
            return at + len(place)
    return size


def _message_text(message: Mapping[str, object]) -> str:
    """The content; where it says nothing, the refusal or the audio that stands in for it."""
    said = _content(message.get("content"))
    if not said and isinstance(message.get("refusal"), str):
        said = _text(str(message["refusal"]))
    return said or ("[audio]" if message.get("audio") else "")


def _content(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(filter(None, map(_part, content)))
    return _part(content)


def _part(part: object) -> str:
    if part is None:
        return ""
    if isinstance(part, str):
        return _text(part)
    if not isinstance(part, dict):
        return _text(_json(part))
    for field in _TEXTS:
        if isinstance(text := part.get(field), str):
            return _text(text)
    return f"[{_medium(part)}]"


def _medium(part: Mapping[str, object]) -> str:
    """What a part is that is no text, with the name of its file."""
    kind = str(part.get("type") or "content")[:40]
    kind = next((medium for medium in _MEDIA if medium in kind), kind)
    inner = part.get("file")
    name = inner.get("filename") if isinstance(inner, dict) else part.get("filename")
    return f"{kind}: {name[:200]}" if isinstance(name, str) and name else kind


def _text(text: str) -> str:
    """A text without the media that are written into it."""
    text = _DATA_URL.sub(lambda url: f"[{url[1] if url[1] in _MEDIA else 'file'}]", text)
    return _BASE64.sub(_without_base64, text)


def _without_base64(run: re.Match[str]) -> str:
    return "[file]" if _SHOWS_BASE64.match(run[0]) else run[0]


def _calls(message: Mapping[str, object]) -> Iterator[str]:
    """The calls of a message as ``name(arguments)``."""
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, list) else []:
        if isinstance(call, dict):
            function = call.get("function") or call.get("custom")
            yield _call(function if isinstance(function, dict) else call)
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _call(legacy)


def _call(function: Mapping[str, object]) -> str:
    given = function.get("arguments", function.get("input"))
    written = given if isinstance(given, str) else _json(given or {})
    return f"{function.get('name') or 'a tool'}({_text(written)})"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


VARIABLE = re.compile(r"\{(summary|new_lines|focus|max_tokens|max_words)\}")

WORDS_PER_TOKEN = 0.6
"""Models count words rather than tokens; most languages need no more tokens for one than this."""

NO_SUMMARY = "(none)"


def fill_template(settings: SummarySettings, summary: str, new_lines: str) -> str:
    """The text of the request; ``summary`` is "" for the first one.

    One pass: what is put in is never searched, and all other braces stay.  A focus that the
    template has no place for comes first, for templates often end where the model is to go on.
    """
    values: Mapping[str, str] = {
        "summary": summary or NO_SUMMARY,
        "new_lines": new_lines,
        "focus": settings.focus,
        "max_tokens": str(settings.max_tokens),
        "max_words": str(max(1, int(settings.max_tokens * WORDS_PER_TOKEN))),
    }
    text = VARIABLE.sub(lambda variable: values[variable[1]], settings.prompt)
    if settings.focus and "{focus}" not in settings.prompt:
        return f"Pay special attention to: {settings.focus}\n\n{text}"
    return text
