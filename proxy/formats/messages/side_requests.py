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

_SYSTEM = re.compile(
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

_ASKED = re.compile(rf"\s*(\[SUGGESTION MODE:|{_SUMMARY})")
"""User texts of requests for suggested replies, and for a summary of a too long conversation."""

_ENDED = re.compile(
    rf"^CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\.$[\s\S]{{,2000}}?^{_SUMMARY}",
    re.MULTILINE,
)
"""The request for a summary in newer versions: at the end of the last user message."""

SCANNED_CHARACTERS = 16_384
"""Characters of a text that are searched."""


def is_side_request(request: ChatRequest, headers: RawHeaders) -> bool:
    said = {name: value.strip().lower() for name, value in headers if name in (_CLASS, _AGENT)}
    if _CLASS in said:
        return said[_CLASS] != b"main"
    if said.get(_AGENT) or request.max_output == 1:  # one token: a connection test
        return True
    text = request.last_user_text
    asked = _ASKED.match(text[:SCANNED_CHARACTERS]) or _ENDED.search(text[-SCANNED_CHARACTERS:])
    return bool(asked or _SYSTEM.search(request.system_text[:SCANNED_CHARACTERS]))
