"""The routes of health, metrics and the memory API, in one table."""

from __future__ import annotations

from starlette.routing import BaseRoute

from proxy.admin.endpoint import Endpoint
from proxy.admin.health import Health
from proxy.admin.parts import AdminParts

__all__ = ["AdminParts", "admin_routes"]


def admin_routes(parts: AdminParts) -> list[BaseRoute]:
    """Everything outside the relay but the console."""
    health, telemetry = Health(parts), parts.telemetry
    return [
        Endpoint("/healthz", {"GET": health.healthz}, telemetry, "health"),
        Endpoint("/readyz", {"GET": health.readyz}, telemetry, "health"),
        Endpoint("/metrics", {"GET": health.metrics}, telemetry, "health"),
        Endpoint("/memory(?:/.*)?", {}, telemetry, "memory"),
    ]
