"""``GET /v1/models`` for several upstreams: one list of all their models."""

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
from proxy.upstreams.windows import TIMEOUT, ContextWindows, models_in
from proxy.wire.failures import UpstreamError
from proxy.wire.upstream import Reply

logger = logging.getLogger(__name__)

RequestList = Callable[[Destination | None], Awaitable[Reply]]
"""Sends the client's request for the models to one upstream; None is [upstream]."""


def lists_models(call: ProxyRequest) -> bool:
    return call.method == "GET" and call.route.target.rstrip(b"/") == b"/models"


class ModelCatalogue:
    """Requests the lists of all upstreams concurrently, with a timeout of ``TIMEOUT`` seconds."""

    def __init__(self, upstreams: Upstreams, windows: ContextWindows, telemetry: Telemetry) -> None:
        self._upstreams, self._windows, self._telemetry = upstreams, windows, telemetry

    async def models(self, request_list: RequestList) -> bytes | None:
        """The merged list as JSON: [upstream]'s models, then the others' in the configured order;
        None if no upstream has a list.

        An upstream with globs contributes only models that are routed to it; one without globs,
        which is chosen by name, contributes all its models.
        """
        upstreams = (None, *self._upstreams.listed)
        answers = await asyncio.gather(*(self._models_of(each, request_list) for each in upstreams))
        if all(models is None for models in answers):
            return None
        listings = [
            (self._model_filter(upstream), models)
            for upstream, models in zip(upstreams, answers, strict=True)
            if models
        ]
        return await asyncio.to_thread(merged, listings)

    def _model_filter(self, upstream: Destination | None) -> Callable[[str], bool]:
        if upstream is not None and not upstream.models:
            return lambda model: True
        return lambda model: self._upstreams.of_model(model) is upstream

    async def _models_of(
        self, upstream: Destination | None, request_list: RequestList
    ) -> list[ListedModel] | None:
        name, models, reason = upstream.name if upstream else DEFAULT, None, "no list"
        try:
            async with asyncio.timeout(TIMEOUT):
                models = await models_in(await request_list(upstream))
        except UpstreamError as failure:
            self._telemetry.count_upstream_failure(failure.kind)
            reason = failure.kind
        except TimeoutError:
            self._telemetry.count_upstream_failure("timeout")
            reason = "timeout"
        except ProxyError as refusal:
            reason = refusal.code
        if models is None:
            self._telemetry.count_upstream_request(name, "unlisted")
            logger.warning("the upstream %s is left out of the list of models: %s", name, reason)
        else:
            self._windows.learn(name, models)
        return models
