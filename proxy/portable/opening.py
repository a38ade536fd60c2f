"""The right reader for a file."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.portable.broken import Broken
from proxy.portable.chat_jsonl import ChatLines
from proxy.portable.chatgpt import ChatGPT
from proxy.portable.detect import Format, Found, detect
from proxy.portable.langchain import LangChain
from proxy.portable.openai import Messages
from proxy.portable.reader import Export
from proxy.portable.source import Source
from proxy.portable.warnings import Warnings

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """In bytes: a line, and what has to be held at once (see the formats)."""

    line: int
    held: int


def opened(
    beginning: bytes, wanted: Format | None, limits: Limits, warnings: Warnings
) -> tuple[Format, Source]:
    """The format of a file that begins so, and its reader, which has read nothing yet.

    ``wanted`` is the format that somebody says it has.  Raises Broken for one that is not known.
    """
    found = Found(wanted, beginning.lstrip()[:1] == b"[") if wanted else detect(beginning)
    if found is None:
        raise Broken(_unknown(beginning))
    return found.format, _source(found, limits, warnings)


def _source(found: Found, limits: Limits, warnings: Warnings) -> Source:
    match found.format:
        case "memory-proxy":
            return Export(limits.line, limits.held, warnings)
        case "chat_jsonl":
            return ChatLines(limits.line, warnings)
        case "chatgpt":
            return ChatGPT(limits.held, warnings)
        case "langchain":
            return LangChain(limits.held, warnings)
        case "openai":
            return Messages(limits.held, warnings)


def _unknown(beginning: bytes) -> str:
    if not beginning.strip():
        return "is empty"
    if beginning[:2] == b"PK":
        return "is a ZIP archive; unpack it, and send the conversations.json in it"
    return "has no format that is known here; say which it is: ?format="
