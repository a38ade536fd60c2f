"""What programs ask beside the conversation, under its session.  Pure.

Claude Code says of a request what it is (``x-claude-code-request-class``), where it was told to;
its sub-agents name themselves.  The rest is known by its shape and its words.

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
"""Titles, topics, summaries of a line, checks of commands, searches."""

_SUMMARY = "Your task is to create a detailed summary of the conversation so far"

_ASKED = re.compile(rf"\s*(\[SUGGESTION MODE:|{_SUMMARY})")
"""What the person might say next; what a conversation that has grown too long is to begin with."""

_ENDED = re.compile(
    rf"^CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\.$[\s\S]{{,2000}}?^{_SUMMARY}",
    re.MULTILINE,
)
"""The latter as newer ones ask it: behind what was said last, in the same message."""

TOLD_BY = 16_384
"""Characters that tell."""


def is_aside(request: ChatRequest, headers: RawHeaders) -> bool:
    said = {name: value.strip().lower() for name, value in headers if name in (_CLASS, _AGENT)}
    if _CLASS in said:
        return said[_CLASS] != b"main"
    if said.get(_AGENT) or request.max_output == 1:  # a probe: an answer of one token is none
        return True
    text = request.last_user_text
    asked = _ASKED.match(text[:TOLD_BY]) or _ENDED.search(text[-TOLD_BY:])
    return bool(asked or _SYSTEM.search(request.system_text[:TOLD_BY]))
