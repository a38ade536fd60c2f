"""The Model Context Protocol, by the official SDK.  Only this module imports it, if /mcp is
enabled.

No state is kept between requests, so that any worker may answer: each has a transport of its own.
Answers are single JSON bodies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as ToolOffer
from msgspec import UNSET, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from proxy import __version__
from proxy.errors import ProxyError, session_not_found
from proxy.mcp import shapes
from proxy.mcp.tools import BY_NAME, TOOLS, Tool, session, sessions
from proxy.mcp.visit import Visit
from proxy.memory.ids import is_id
from proxy.memory_api.endpoint import with_api_errors

T = TypeVar("T")
Context = Any
"""The SDK's context of a request, of which only ``request`` is used."""

VISIT = "mcp.visit"
"""The key of a request's ``Visit`` in its scope."""

INSTRUCTIONS = (
    "What the user told their apps before, and what was learned of them. Search it before you"
    " answer what may depend on that; save what is to last."
)


class McpServer:
    """Answers MCP's requests, each with the permissions of its ``Visit``."""

    def __init__(self) -> None:
        self._server = Server(
            "memory-proxy",
            version=__version__,
            title="Memory",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=_input_schema,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=_read_resource,
        )
        self._server.middleware.clear()  # OpenTelemetry's, which would see what is said

    async def answer(self, visit: Visit, body: bytes) -> Response:
        """The answer to one message; its HTTP status and body are MCP's."""
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        reply = CapturedResponse()
        scope = {**visit.request.scope, VISIT: visit}
        async with manager.run():
            await manager.handle_request(scope, _replay(body, visit.request.receive), reply.take)
        return reply.response()


class CapturedResponse:
    """Collects the answer of an ASGI application; answers of tools are small."""

    def __init__(self) -> None:
        self._start: Message = {"status": 500, "headers": []}
        self._body = bytearray()

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        response = Response(bytes(self._body), self._start["status"])
        response.raw_headers = [*self._start["headers"], (b"cache-control", b"no-store")]
        return response


def _replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that returns the body, and then what the original one does (a disconnect)."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return messages.pop() if messages else await receive()

    return receiving


def _visit(context: Context) -> Visit:
    request: Request = context.request
    visit: Visit = request.scope[VISIT]
    return visit


async def _list_tools(context: Context, page: PaginatedRequestParams | None) -> ListToolsResult:
    visit = _visit(context)
    return ListToolsResult(tools=[_offer(each) for each in TOOLS if each.is_open(visit)])


def _offer(tool: Tool) -> ToolOffer:
    hints = ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.reads,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.reads or tool.destroys,
        open_world_hint=False,
    )
    return ToolOffer(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=hints,
    )


def _input_schema(name: str) -> Mapping[str, Any] | None:
    return BY_NAME[name].input_schema if name in BY_NAME else None


async def _call_tool(context: Context, call: CallToolRequestParams) -> CallToolResult:
    """Call a tool.  Errors are returned as results, which the model sees."""
    tool = BY_NAME.get(call.name)
    if tool is None:
        raise MCPError(INVALID_PARAMS, f"There is no such tool. There are: {', '.join(BY_NAME)}.")
    try:
        answer = await with_api_errors(tool.use(_visit(context), call.arguments or {}))
    except ProxyError as error:
        told = f"{error.message} ({error.code})"
        return CallToolResult(content=[TextContent(type="text", text=told)], is_error=True)
    content = TextContent(type="text", text=_json(answer))
    return CallToolResult(content=[content], structured_content=msgspec.json.decode(content.text))


PREFIX = "memory://sessions/"
TEMPLATE = PREFIX + "{session_id}"
MIME = "application/json"


async def listed(visit: Visit, cursor: str | None) -> shapes.ListedSessions:
    """A page of the sessions that the connection may see.  Raises what operations raise."""
    _must_read(visit)
    after = UNSET if cursor is None else cursor
    return await sessions(visit, shapes.ListSessions(limit=shapes.MAX_LISTED, after=after))


async def contents(visit: Visit, uri: str) -> shapes.SessionPart:
    """The last messages of a session.  Raises what operations raise."""
    _must_read(visit)
    name = unquote(uri.removeprefix(PREFIX), errors="replace")
    if not uri.startswith(PREFIX) or not is_id(name):
        raise session_not_found()
    return await session(visit, shapes.ReadSession(session_id=name, limit=shapes.MAX_LISTED))


def _must_read(visit: Visit) -> None:
    if not visit.reads:
        raise visit.refusal("read")


async def _list_resources(
    context: Context, page: PaginatedRequestParams | None
) -> ListResourcesResult:
    found = await _attempted(listed(_visit(context), page.cursor if page else None))
    return ListResourcesResult(resources=list(map(_resource, found.data)), next_cursor=found.next)


def _resource(session: shapes.ListedSession) -> Resource:
    return Resource(
        uri=PREFIX + quote(session.id, safe=""),
        name=session.id,
        title=session.title or session.preview or session.id,
        mime_type=MIME,
    )


async def _list_templates(
    context: Context, page: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    template = ResourceTemplate(
        uri_template=TEMPLATE,
        name="session",
        title="A session",
        description="The last messages of a recorded conversation.",
        mime_type=MIME,
    )
    return ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(context: Context, wanted: ReadResourceRequestParams) -> ReadResourceResult:
    found = await _attempted(contents(_visit(context), wanted.uri))
    text = TextResourceContents(uri=wanted.uri, mime_type=MIME, text=_json(found))
    return ReadResourceResult(contents=[text])


async def _attempted(work: Awaitable[T]) -> T:
    """The result of ``work``.  Raises MCPError for errors: resources have no error results."""
    try:
        return await with_api_errors(work)
    except ProxyError as error:
        code = INTERNAL_ERROR if error.status >= 500 else INVALID_PARAMS
        raise MCPError(code, error.message, {"code": error.code}) from None


def _json(answer: Struct) -> str:
    return msgspec.json.encode(answer).decode()
