"""The official SDK's client of MCP, and what it is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support.jsonrpc import PATH
from tests.support.waiting import PATIENCE

Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
"""The protocol since 2026-07-28, which has no handshake, and the one before."""


@asynccontextmanager
async def agent(
    url: str, key: str | None = "key-of-a", era: Era = "auto", path: str = PATH, **headers: str
) -> AsyncIterator[Client]:
    """The SDK's client of a running proxy; ``_`` in names of headers is ``-``."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient(headers=sent, timeout=PATIENCE, verify=False) as http:
        transport = streamable_http_client(f"{url}{path}", http_client=http)
        async with Client(transport, mode=era) as client:
            yield client


def answered(result: CallToolResult) -> Any:
    """The structured answer of a tool, which its text is as well."""
    assert not result.is_error, result.content
    return result.structured_content


def told(result: CallToolResult) -> str:
    """What a tool says is wrong."""
    assert result.is_error, result.structured_content
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
