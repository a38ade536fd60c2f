"""Context windows of models: from the upstreams' own lists, else from the catalogue.

The list of each of [[upstreams]] is fetched hourly with its own key; that of [upstream] is read
when a client requests it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from proxy.chat.models.limits import context_window
from proxy.settings.upstreams import DEFAULT
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import Destination
from proxy.upstreams.models import MAX_BYTES, MAX_MODELS, ListedModel, read_models
from proxy.wire.api import json_headers
from proxy.wire.failures import UpstreamError
from proxy.wire.replies import decoded
from proxy.wire.upstream import Reply

logger = logging.getLogger(__name__)

TIMEOUT = 5.0
"""Timeout of a list of models, in seconds."""

REFRESH_SECONDS = 3600.0
"""Seconds between fetches of the lists."""


async def models_in(reply: Reply) -> list[ListedModel] | None:
    """Read a list of models and close the reply; None if it is no list.  Raises UpstreamError."""
    try:
        if reply.status != 200:
            return None
        body = await decoded(reply).read(MAX_BYTES)
    finally:
        await reply.close()
    return await asyncio.to_thread(read_models, body)


class ContextWindows:
    """The windows of the models of several upstreams; a ``WindowLookup``."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._known: dict[str, dict[str, int]] = {}
        self._task: asyncio.Task[None] | None = None

    def __call__(self, upstream: str, model: str | None, wanted: int) -> int | None:
        """The model's context window in tokens; None if it is unknown, or not needed since
        ``wanted`` tokens fit into any model.

        ``upstream`` is its name, "" to choose it by the model.
        """
        if model is None:
            return None
        chosen = None if upstream else self._upstreams.of_model(model)
        known = self._known.get(upstream or (chosen.name if chosen else DEFAULT), {})
        return known.get(model) or context_window(model, wanted)

    def learn(self, upstream: str, models: Iterable[ListedModel]) -> None:
        known = self._known.setdefault(upstream, {})
        for model in models:
            if model.window is not None and (model.id in known or len(known) < MAX_MODELS):
                known[model.id] = model.window

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="lists of models")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            await asyncio.gather(*map(self._load_windows, self._upstreams.listed))
            await asyncio.sleep(REFRESH_SECONDS)

    async def _load_windows(self, upstream: Destination) -> None:
        headers = upstream.headers(json_headers([]), "models")
        target = b"/models" + (
            b"?" + upstream.query_for_models if upstream.query_for_models else b""
        )
        try:
            async with asyncio.timeout(TIMEOUT):
                reply = await upstream.upstream.send("GET", target, headers, None)
                models = await models_in(reply)
        except (UpstreamError, TimeoutError) as failure:
            logger.debug("the upstream %s does not list its models: %s", upstream.name, failure)
        except Exception:  # the boundary to an upstream's list: must not end the task
            logger.exception("the models of the upstream %s cannot be read", upstream.name)
        else:
            self.learn(upstream.name, models or ())
