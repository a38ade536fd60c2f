"""One list of the models of all upstreams, as clients look for what they may ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from proxy.errors import ProxyError
from proxy.gateway.request import ProxyRequest
from proxy.settings.upstreams import DEFAULT
from proxy.telemetry import Telemetry
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination
from proxy.upstreams.models import ListedModel, merged
from proxy.upstreams.windows import PATIENCE, ContextWindows, models_in
from proxy.wire.failures import UpstreamError
from proxy.wire.upstream import Reply

logger = logging.getLogger(__name__)

Ask = Callable[[Destination | None], Awaitable[Reply]]
"""Sends the client's request for the models to one upstream; None is [upstream]."""


def lists_models(call: ProxyRequest) -> bool:
    """Does it ask for all models?"""
    return call.method == "GET" and call.route.target.rstrip(b"/") == b"/models"


class ModelCatalogue:
    """Asks all upstreams at once; each has ``PATIENCE`` seconds."""

    def __init__(self, upstreams: Upstreams, windows: ContextWindows, telemetry: Telemetry) -> None:
        self._upstreams, self._windows, self._telemetry = upstreams, windows, telemetry

    async def models(self, ask: Ask) -> bytes | None:
        """The list as JSON: [upstream]'s models, then the others' by the order of the
        configuration; None where no upstream has a list.

        A model is told of by the upstream that a request for it goes to, and by those that no
        model leads to.
        """
        asked = (None, *self._upstreams.listed)
        found = await asyncio.gather(*(self._of(each, ask) for each in asked))
        lists = [(each, models) for each, models in zip(asked, found, strict=True) if models]
        if all(models is None for models in found):
            return None
        return await asyncio.to_thread(
            merged, [(self._may_tell(each), models) for each, models in lists]
        )

    def _may_tell(self, upstream: Destination | None) -> Callable[[str], bool]:
        if upstream is not None and not upstream.models:
            return lambda model: True
        return lambda model: self._upstreams.of_model(model) is upstream

    async def _of(self, upstream: Destination | None, ask: Ask) -> list[ListedModel] | None:
        name, models, why = upstream.name if upstream else DEFAULT, None, "no list"
        try:
            async with asyncio.timeout(PATIENCE):
                models = await models_in(await ask(upstream))
        except UpstreamError as failure:
            self._telemetry.upstream_failed(failure.kind)
            why = failure.kind
        except TimeoutError:
            self._telemetry.upstream_failed("timeout")
            why = "timeout"
        except ProxyError as refusal:
            why = refusal.code
        if models is None:
            self._telemetry.upstream_asked(name, "unlisted")
            logger.warning("the upstream %s is left out of the list of models: %s", name, why)
        else:
            self._windows.learn(name, models)
        return models
