"""Chooses a request's upstream: by its name, else by its model, else [upstream].

Names and globs are the operator's; a client never gives a URL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache

from proxy.chat.models.limits import MAX_NAME
from proxy.errors import unknown_upstream
from proxy.settings.upstreams import DEFAULT
from proxy.upstreams.destination import Destination

REMEMBERED = 1024
"""Choices by model name that are cached; names come from clients."""


class Upstreams:
    """``listed`` in the order of the configuration.  None stands for [upstream]."""

    def __init__(self, listed: Sequence[Destination]) -> None:
        self.listed = tuple(listed)
        self._by_name = {each.name: each for each in listed}
        self._globs = [
            (re.compile(translate(text)), each) for each in listed for text in each.models
        ]
        self._remembered = lru_cache(REMEMBERED)(self._matching)

    def by_name(self, name: str) -> Destination | None:
        """Raises ProxyError 400 for a name that is not known."""
        if name == DEFAULT:
            return None
        found = self._by_name.get(name)
        if found is None:
            raise unknown_upstream()
        return found

    def of_model(self, model: str) -> Destination | None:
        """The first upstream with a glob that matches the model's name, case-sensitively."""
        return self._remembered(model[:MAX_NAME])

    def _matching(self, model: str) -> Destination | None:
        return next((each for glob, each in self._globs if glob.match(model)), None)
