"""How many tokens may be added to a request."""

from __future__ import annotations

from proxy.chat.limits import context_window
from proxy.chat.request import ChatRequest
from proxy.chat.tokens import TokenCounter
from proxy.gateway.aside import Aside

ANSWER = 1024
"""Tokens kept free for an answer whose request sets no limit."""


class Room:
    """``bounds`` are what the request and its profile allow; None is no bound."""

    def __init__(
        self,
        request: ChatRequest,
        body: bytes,
        counter: TokenCounter,
        aside: Aside,
        *bounds: int | None,
    ) -> None:
        self._request, self._size, self._counter = request, len(body), counter
        self._aside = aside
        self._bounds = [bound for bound in bounds if bound is not None]

    async def in_context(self, wanted: int) -> int | None:
        """What the model's context leaves, None if there is room enough for all that is wanted.

        A request has fewer tokens than bytes: only near the limit it is worth counting them.
        """
        answer = self._request.max_output or ANSWER
        window = context_window(self._request.model)
        if window is None or wanted + self._size + answer <= window:
            return None
        return max(0, window - answer - await self._said())

    async def left(self, most: int, injected: int) -> int:
        """What of ``most`` may be added, beside what is injected already."""
        room = await self.in_context(injected + most)
        bounds = self._bounds if room is None else [*self._bounds, room]
        return min([most, *(bound - injected for bound in bounds)])

    async def _said(self) -> int:
        said = [x.raw for x in (*self._request.leading, *self._request.messages)]
        return await self._aside.run(self._size, lambda: sum(map(self._counter.count, said)))
