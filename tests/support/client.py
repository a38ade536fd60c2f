"""HTTP clients of what listens on this machine."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from tests.support.waiting import PATIENCE


def client_of(
    url: str, headers: Mapping[str, str] | None = None, timeout: float = PATIENCE
) -> httpx.AsyncClient:
    """One for this base URL.  Without TLS it need not read whom to trust, which takes 30 ms."""
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, verify=False)
