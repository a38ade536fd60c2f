"""Recognises side requests, which programs send under a conversation's session.  Pure.

Claude Code can be configured to send each request's class (``x-claude-code-request-class``), and
its sub-agents send an id.  Other side requests are recognised by their text.

https://code.claude.com/docs/en/llm-gateway-protocol
"""

from __future__ import annotations

import re

from proxy.chat.request import ChatRequest
from proxy.errors import RawHeaders

_CLASS = b"x-claude-code-request-class"
_AGENT = b"x-claude-code-agent-id"

_SYSTEM_TEXT = re.compile(
    r"^Generate a concise, sentence-case title"
    r"|^Analyze if this message indicates a new conversation topic"
    r"|^Summarize this coding conversation in under"
    r"|^Your task is to process Bash commands that an AI coding agent wants to run"
    r"|^Extract any file paths that this command reads or modifies"
    r"|^You are an assistant for performing a web search tool use",
    re.MULTILINE,
)
"""System texts of requests for titles, topics, short summaries, command checks and searches."""

_SUMMARY = "Your task is to create a detailed summary of the conversation so far"

_USER_TEXT_START = re.compile(rf"\s*(\[SUGGESTION MODE:|{_SUMMARY})")
"""User texts of requests for suggested replies, and for a summary of a too long conversation."""

_USER_TEXT_END = re.compile(
    rf"^CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\.$[\s\S]{{,2000}}?^{_SUMMARY}",
    re.MULTILINE,
)
"""The request for a summary in newer versions: at the end of the last user message."""

SCANNED_CHARACTERS = 16_384
"""Characters of a text that are searched."""


def is_side_request(request: ChatRequest, headers: RawHeaders) -> bool:
    values = {name: value.strip().lower() for name, value in headers if name in (_CLASS, _AGENT)}
    if _CLASS in values:
        return values[_CLASS] != b"main"
    if values.get(_AGENT) or request.max_output == 1:  # one token: a connection test
        return True
    text = request.last_user_text
    return bool(
        _USER_TEXT_START.match(text[:SCANNED_CHARACTERS])
        or _USER_TEXT_END.search(text[-SCANNED_CHARACTERS:])
        or _SYSTEM_TEXT.search(request.system_text[:SCANNED_CHARACTERS])
    )
