"""The errors that only /mcp has; all others are the memory API's."""

from __future__ import annotations

from proxy.errors import FixedError
from proxy.settings.extras import install_commands

origin_not_allowed = FixedError(
    403,
    "origin_not_allowed",
    "Pages of this origin may not ask here. List it in server.cors_origins.",
    param="Origin",
)
mcp_disabled = FixedError(
    404,
    "mcp_disabled",
    "MCP is switched off here. Set mcp.enabled = true in the proxy's configuration.",
)
mcp_not_installed = FixedError(
    501,
    "mcp_not_installed",
    "MCP is switched on here, and the library for it is missing. Install it with the proxy: "
    + install_commands("mcp"),
)
