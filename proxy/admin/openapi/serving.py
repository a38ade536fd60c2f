"""``/openapi.json``: the document, for whoever asks."""

from __future__ import annotations

from functools import cached_property

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.objects import encoded
from proxy.admin.openapi.document import Offer, document
from proxy.settings import Settings

HEADERS = {"content-type": "application/json", "cache-control": "no-store"}


class OpenApi:
    """Made once, when somebody asks: it changes with the configuration alone."""

    def __init__(self, settings: Settings) -> None:
        self._offer = offer_of(settings)

    async def get(self, request: Request) -> Response:
        return Response(self._body, headers=HEADERS)

    @cached_property
    def _body(self) -> bytes:
        return encoded(document(self._offer))


def offer_of(settings: Settings) -> Offer:
    """In the mode "clients" everybody needs a key."""
    return Offer(settings.tenancy.mode != "clients", tuple(settings.profiles))
