"""The routes of health, metrics, the console and the memory API."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.routing import BaseRoute

from proxy.console.pages import Pages
from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.endpoint import Endpoint, Handler
from proxy.memory_api.operation import handler_of
from proxy.memory_api.operations import OPERATIONS
from proxy.memory_api.overview.health import Health

_PARAMETER = re.compile(r"\{(\w+)\}")

Table = Mapping[str, Mapping[str, Handler]]


def admin_routes(api: Api) -> list[BaseRoute]:
    """All routes; the last answers 404 for any other path below ``/memory``.

    They match the raw path, so they belong at the root of an application and not below a mount.
    """
    pages, telemetry = Pages(), api.telemetry
    memory = {**_operations(api), **_console(pages), "/memory(?:/.*)?": {}}
    return [
        Endpoint("/", {"GET": pages.welcome}, telemetry, "other"),
        *(Endpoint(path, table, telemetry, "health") for path, table in _health(api).items()),
        *(Endpoint(path, table, telemetry, "memory") for path, table in memory.items()),
    ]


def _health(api: Api) -> Table:
    health = Health(api)
    return {
        "/healthz": {"GET": health.healthz},
        "/readyz": {"GET": health.readyz},
        "/metrics": {"GET": health.metrics},
    }


def _operations(api: Api) -> Table:
    """Handlers by pattern and method; literal paths come before those with parameters."""
    access = Access(api)
    handlers: dict[str, dict[str, Handler]] = {}
    for each in sorted(OPERATIONS, key=lambda each: each.path.count("{")):
        pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", each.path)
        handlers.setdefault(pattern, {})[each.method] = handler_of(each, api, access)
    return handlers


def _console(pages: Pages) -> Table:
    return {
        "/memory": {"GET": pages.redirect},
        "/memory/": {"GET": pages.page},
        "/memory/console/(?P<file>.+)": {"GET": pages.file},
    }
