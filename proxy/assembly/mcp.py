"""Makes the route of /mcp; its large library is imported only if it is enabled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from proxy.lazy import lazy_import
from proxy.mcp.errors import mcp_disabled, mcp_not_installed
from proxy.mcp.route import closed_route, mcp_route
from proxy.memory_api.api import Api
from proxy.settings import Settings
from proxy.settings.extras import install_commands

if TYPE_CHECKING:
    from proxy.mcp import protocol
else:
    protocol = lazy_import("proxy.mcp.protocol")

logger = logging.getLogger(__name__)


def route_of_mcp(api: Api) -> BaseRoute:
    """The route of /mcp; one that answers with an error if it is disabled or not installed."""
    if not api.settings.mcp.enabled:
        return closed_route(mcp_disabled, api.telemetry)
    problem = next(unmet(api.settings), None)
    if problem is not None:
        logger.warning("%s: %s", *problem)
        return closed_route(mcp_not_installed, api.telemetry)
    return mcp_route(api, protocol.McpServer().answer)


def unmet(settings: Settings) -> Iterator[tuple[str, str]]:
    """The setting that requires a missing package, with a message; nothing if all is installed."""
    if settings.mcp.enabled and find_spec("mcp") is None:
        yield "mcp.enabled", f"there is no MCP: {install_commands('mcp')}"
