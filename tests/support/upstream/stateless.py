"""An upstream of the Responses API that keeps nothing, as vLLM, llama.cpp, Ollama and OpenRouter.

    one.up.always(StatelessResponder())

It refuses whatever it would have to keep or to know, and calls all its responses the same.
"""

from __future__ import annotations

from typing import Any

from tests.support.upstream.answers import Script, error_answer, json_answer
from tests.support.upstream.connection import Request
from tests.support.upstream.responder import Json, RefusedItem, Responder

NAME = "resp_1"
KEPT = ("previous_response_id", "conversation", "background")


class StatelessResponder(Responder):
    """See Responder.  ``strays`` are requests for what is not there; ``name`` has all responses."""

    def __init__(self) -> None:
        super().__init__()
        self.strays: list[str] = []
        self.name = NAME

    def __call__(self, request: Request) -> Script:
        path = request.path.split("?")[0]
        if request.method != "POST" or not path.endswith(("/responses", "/input_tokens")):
            self.strays.append(f"{request.method} {path}")
            return error_answer(404, "page not found")
        if path.endswith("/input_tokens"):
            self._must_be_stateless(request.json)
            return json_answer({"object": "response.input_tokens", "input_tokens": 11})
        return super().__call__(request)

    def _before(self, body: Any) -> list[Json]:
        self._must_be_stateless(body)
        return []

    def _reads(self, thought: Json) -> bool:
        return "content" in thought or super()._reads(thought)

    def _must_be_stateless(self, body: Any) -> None:
        for name in KEPT:
            if body.get(name) is not None:
                raise RefusedItem(f"Unsupported parameter: '{name}'.")
        if body.get("store") is True:
            raise RefusedItem("Unsupported value: 'store'.")
        if any(item.get("type") == "item_reference" for item in _items(body)):
            raise RefusedItem("Unsupported item: 'item_reference'.")

    def _answered(self, body: Json, before: Any, given: Any) -> Json:
        return {**super()._answered(body, before, given), "id": self.name, "store": False}


def _items(body: Any) -> list[Json]:
    given = body.get("input")
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
