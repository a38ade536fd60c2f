"""Which upstream a request goes to: by its name, else by its model, else [upstream].

Pure, but for what it remembers.  Names and globs are the operator's; a client never gives a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import lru_cache

from proxy.errors import unknown_upstream
from proxy.settings.upstreams import DEFAULT
from proxy.upstreams.destination import Destination

LONGEST = 200
"""Characters of a model's name that is compared: a longer one is nobody's."""

REMEMBERED = 1024
"""Models' names, which come from clients, with what was chosen for them."""


class Upstreams:
    """``listed`` in the order of the configuration.  None stands for [upstream]."""

    def __init__(self, listed: Sequence[Destination]) -> None:
        self.listed = tuple(listed)
        self._by_name = {each.name: each for each in listed}
        self._globs = [(_glob(text), each) for each in listed for text in each.models]
        self.of_model: Callable[[str], Destination | None] = lru_cache(REMEMBERED)(self._of_model)

    def named(self, name: str) -> Destination | None:
        """Raises ProxyError 400 for a name that is not known."""
        if name == DEFAULT:
            return None
        found = self._by_name.get(name)
        if found is None:
            raise unknown_upstream()
        return found

    def _of_model(self, model: str) -> Destination | None:
        """The first with a glob that the model's whole name matches, in its own case."""
        if len(model) > LONGEST:
            return None
        return next((each for glob, each in self._globs if glob.match(model)), None)


def _glob(text: str) -> re.Pattern[str]:
    return re.compile(translate(text))
