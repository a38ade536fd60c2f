"""The names of the formats that can be imported."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal[
    "memory-proxy",
    "openai",
    "chat_jsonl",
    "chatgpt",
    "claude",
    "claude_code",
    "codex",
    "open_webui",
    "librechat",
    "langchain",
    "mem0",
    "langmem",
]

FORMATS: tuple[Format, ...] = get_args(Format)
