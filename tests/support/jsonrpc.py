"""Messages to /mcp over plain HTTP, as anybody may send them."""

from __future__ import annotations

import json
from typing import Any

import httpx

PATH = "/mcp"
ANEW = "2026-07-28"
"""The first protocol without a handshake."""

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Json = dict[str, Any]


def message(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def calling(tool: str, **arguments: Any) -> Json:
    """The message that calls a tool."""
    return message("tools/call", name=tool, arguments=arguments)


async def post(
    client: httpx.AsyncClient, body: Json | bytes, query: Json | None = None, /, **headers: str
) -> httpx.Response:
    """Send one message, or what is none; ``_`` in names of headers is ``-``."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await client.post(PATH, content=content, headers={**HEADERS, **more}, params=query)


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
