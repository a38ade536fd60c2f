"""Clients of MCP: the official SDK's, and one that sends whatever it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support.waiting import PATIENCE

PATH = "/mcp"
ANEW = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
"""The protocol since 2026-07-28, which has no handshake, and the one before."""

Json = dict[str, Any]


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


def message(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def calling(tool: str, **arguments: Any) -> Json:
    """The message that calls a tool."""
    return message("tools/call", name=tool, arguments=arguments)


async def post(client: httpx.AsyncClient, body: Json | bytes, **headers: str) -> httpx.Response:
    """Send one message, or what is none."""
    sent = {"accept": ACCEPT, "content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post(PATH, content=content, headers=sent)


async def post_anew(client: httpx.AsyncClient, body: Json) -> httpx.Response:
    """Send a message as the protocol has it since 2026-07-28, which says in each who asks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": ANEW,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {**body["params"], "_meta": meta}
    headers = {"mcp_protocol_version": ANEW, "mcp_method": body["method"]}
    if "name" in params:
        headers["mcp_name"] = params["name"]
    return await post(client, json.dumps({**body, "params": params}).encode(), **headers)
