"""Canonical equality of messages, as a digest, and fuzzy equality of answers.

Two messages are equal if these agree:

* the role (``developer`` and ``system`` are two);
* the content: its texts and other parts in order.  A string is one text part; neighbouring text
  parts are one text, joined with a line feed; white space around a text, and texts of nothing else,
  do not count.  Other parts compare as JSON values, without the cache marks that clients move from
  message to message.  A refusal is text wherever it stands;
* the tool calls and the legacy function call: id, name, arguments.  Arguments compare as JSON
  values, as text where they are no JSON or over ``MAX_VALUES``; none, null and ``{}`` are equal;
* the id of the answered call, or the name of the answered legacy function.

Absent, null, "" and an empty list are equal; all other fields are ignored.

Linear measures with a length cap: an edit distance would let a hostile pair of texts stop the
proxy for seconds.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, groupby
from typing import NamedTuple

import msgspec

from proxy.chat import jsontext
from proxy.chat.cachemarks import without_marks_in_value
from proxy.chat.json_size import has_more_values

MAX_VALUES = 100_000
"""Arguments with more values (see ``has_more_values``) are compared as text."""

_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of content parts that are text, and the field it is in."""


def digest(role: str, text: str, rest: bytes = b"") -> str:
    """96 bits of BLAKE2b in URL-safe base64, 16 characters.

    ``text`` is stripped; ``rest`` is everything that is not text, in canonical JSON, or nothing.
    """
    hasher = blake2b(f"{len(role)}:{len(text)}:{role}".encode(), digest_size=12)
    for at in range(0, len(text), jsontext.PIECE):  # in pieces: a text may be large
        hasher.update(text[at : at + jsontext.PIECE].encode())
    hasher.update(rest)
    return urlsafe_b64encode(hasher.digest()).decode()


class Content(msgspec.Struct, frozen=True):
    """A message's content in canonical form.

    ``text`` is all its text; ``parts`` are stripped texts, and other parts as JSON values in a list
    of one, in order.  ``ends``: the end of each text part in ``text``, if there are several.
    """

    text: str
    parts: tuple[str | list[object], ...]
    ends: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.parts

    @property
    def core(self) -> str:
        """The stripped text if there is nothing else, else ""."""
        return self.parts[0] if self._is_single_text and isinstance(self.parts[0], str) else ""

    @property
    def _is_single_text(self) -> bool:
        return len(self.parts) == 1 and isinstance(self.parts[0], str)

    def rest(self, calls: Sequence[Call], answers: str | None) -> bytes:
        """What a digest covers beside ``core``: b"" for a message that is only text."""
        parts = () if self._is_single_text else self.parts
        if not parts and not calls and answers is None:
            return b""
        return jsontext.canonical([parts, [call.value for call in calls], answers])

    def rest_without_ids(self, calls: Sequence[Call]) -> bytes:
        """The same without the ids of calls, for a message that makes calls or answers one."""
        if self._is_single_text and not calls:
            return b"shape"
        parts = () if self._is_single_text else self.parts
        return jsontext.canonical([parts, [call.value_without_id for call in calls], "shape"])


def read_content(content: object) -> Content:
    """Read a message's content, which may be any JSON value."""
    if not content and not isinstance(content, (int, float)):
        return Content("", ())
    if isinstance(content, str):
        text = jsontext.well_formed(content)
        core = text.strip()
        return Content(text, (core,) if core else ())
    texts: list[str] = []
    parts: list[str | list[object]] = []
    listed = content if isinstance(content, list) else [content]
    for is_text, group in groupby(listed, key=lambda part: _text(part) is not None):
        if is_text:
            group_texts = [_text(part) or "" for part in group]
            texts += group_texts
            core = "\n".join(group_texts).strip()
            parts += [core] if core else []
        else:
            parts += [[without_marks_in_value(part)] for part in group]
    ends = accumulate(len(text) + 1 for text in texts) if len(texts) > 1 else ()
    return Content("\n".join(texts), tuple(parts), tuple(end - 1 for end in ends))


def _text(part: object) -> str | None:
    """The text of a text part, None for any other."""
    if isinstance(part, str):
        return jsontext.well_formed(part)
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    text = part.get(_TEXT_PARTS.get(kind, "")) if isinstance(kind, str) else None
    return jsontext.well_formed(text) if isinstance(text, str) else None


class Call(NamedTuple):
    """A tool call: its id (None if it is not a valid call), and the value to compare."""

    id: str | None
    value: object

    @property
    def value_without_id(self) -> object:
        if self.id is None or not isinstance(self.value, list):
            return self.value
        return self.value[1:]


def legacy_id(name: object) -> str:
    """The id of a call that has none: a legacy function call is known by its function's name."""
    return f"function:{jsontext.text_in(name)}"


def read_calls(fields: Mapping[str, object]) -> tuple[Call, ...]:
    """The tool calls of a message, then its legacy function call."""
    listed, legacy = fields.get("tool_calls"), fields.get("function_call")
    functions = [_function(item) for item in listed] if isinstance(listed, list) else []
    read = _arguments_reader([*functions, legacy])
    calls = [_call(item, read) for item in listed] if isinstance(listed, list) else []
    if listed and not isinstance(listed, list):
        calls.append(Call(None, listed))
    if isinstance(legacy, dict):
        name = jsontext.text_in(legacy.get("name"))
        calls.append(Call(legacy_id(name), [None, name, read(legacy.get("arguments"))]))
    elif legacy:
        calls.append(Call(None, legacy))
    return tuple(calls)


def _function(item: object) -> object:
    return item.get("function") if isinstance(item, dict) else None


def _call(item: object, read: Callable[[object], object]) -> Call:
    if not isinstance(item, dict):
        return Call(None, item)
    id, function = jsontext.text_in(item.get("id")), item.get("function")
    if isinstance(function, dict):
        name = jsontext.text_in(function.get("name"))
        return Call(id, [id, name, read(function.get("arguments"))])
    rest = {key: value for key, value in item.items() if key not in ("id", "index")}
    return Call(id, [id, without_marks_in_value(rest)])


def _arguments_reader(functions: list[object]) -> Callable[[object], object]:
    """The function that reads arguments: as values, or as text if they have too many values."""
    arguments = [function.get("arguments") for function in jsontext.objects_in(functions)]
    texts = [text.encode("utf-8", "replace") for text in arguments if isinstance(text, str)]
    return _arguments_as_text if has_more_values(MAX_VALUES, *texts) else _arguments_value


def _arguments_as_text(arguments: object) -> object:
    if isinstance(arguments, str):
        return jsontext.well_formed(arguments)
    return _arguments_value(arguments)


def _arguments_value(arguments: object) -> list[object] | str:
    """The value in a list; the text if it is not JSON, which a model may write."""
    if not isinstance(arguments, str):
        return [arguments or {}]
    try:
        return [(jsontext.value(arguments.encode()) or {}) if arguments.strip() else {}]
    except jsontext.UNREADABLE:
        return jsontext.well_formed(arguments)


SIMILAR_SHARE = 0.8
"""Answers are similar if they share at least this part of the larger one's words."""

MAX_CHARACTERS = 100_000
"""Only the words in the first so many characters are compared; longer texts must also have similar
lengths."""

# Scripts without spaces: kana, ideographs, Hangul and the supplementary ideographic planes.
_SPACELESS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")


def are_similar(a: str, b: str) -> bool:
    """Whether two answers have the same letters and digits, or share at least 0.8 of their words.

    Words are compared without case and order; each character of a script without spaces is a word.
    Texts without any letter or digit are similar only if they are equal except for white space.
    """
    if a == b:
        return True
    shorter, longer = sorted((len(a), len(b)))
    if longer > MAX_CHARACTERS and shorter < SIMILAR_SHARE * longer:
        return False
    words_a, words_b = _words(a), _words(b)
    if not words_a or not words_b:
        return not words_a and not words_b and a.split() == b.split()
    if "".join(words_a) == "".join(words_b):
        return True
    return _shared_word_ratio(words_a, words_b) >= SIMILAR_SHARE


def is_prefix(a: str, b: str) -> bool:
    """Whether one of two stripped texts begins with the other; False if one is empty."""
    a, b = a.strip(), b.strip()
    return bool(a and b) and (a.startswith(b) or b.startswith(a))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_CHARACTERS].casefold())


def _shared_word_ratio(a: list[str], b: list[str]) -> float:
    common = (Counter(a) & Counter(b)).total()
    return common / max(len(a), len(b))
