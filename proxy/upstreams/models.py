"""Lists of models as upstreams have them: read, merged, and how long a model's context is.

Pure.  Entries keep their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from proxy.chat import jsontext

MAX_BYTES = 8 * 1024 * 1024
"""Of a list: the longest that are known have one."""

MAX_MODELS = 10_000

MAX_TOKENS = 1_000_000_000

WINDOWS = (
    "max_model_len",  # vLLM, SGLang: as it was started
    "n_ctx",  # llama.cpp, in ``meta``: as it was started
    "loaded_context_length",  # LM Studio: as it was loaded
    "context_length",  # OpenRouter, Together, Fireworks
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "max_input_tokens",  # Anthropic
    "n_ctx_train",  # llama.cpp, in ``meta``: what the model could have
)
"""What APIs call a model's context window, what holds for this server before what the model could
have."""

WITHIN = ("meta", "top_provider")
"""Objects of an entry that may say it."""


class ListedModel(NamedTuple):
    """An entry of a list: its JSON, and its context window in tokens where it says one."""

    id: str
    raw: bytes
    window: int | None


Told = tuple[Callable[[str], bool], list[ListedModel]]
"""A list, and whether it may tell of a model, by its id."""


def read_models(body: bytes) -> list[ListedModel] | None:
    """The entries of a list with an id, in their order; None if it is no list of models.

    Takes long for a large one.
    """
    try:
        entries = jsontext.items(jsontext.fields(body)["data"])
        return list(filter(None, map(_model, entries[:MAX_MODELS])))
    except (KeyError, *jsontext.UNREADABLE):
        return None


def _model(raw: bytes) -> ListedModel | None:
    entry = jsontext.decode(raw)
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return None
    return ListedModel(entry["id"], raw, _window(entry))


def _window(entry: dict[str, object]) -> int | None:
    holders = [entry, *(each for name in WITHIN if isinstance(each := entry.get(name), dict))]
    said = (_tokens(holder.get(name)) for name in WINDOWS for holder in holders)
    return next(filter(None, said), None)


def _tokens(said: object) -> int | None:
    if isinstance(said, bool) or not isinstance(said, int):
        return None
    return said if 0 < said <= MAX_TOKENS else None


def merged(lists: Iterable[Told]) -> bytes:
    """One list of all, as OpenAI writes it; of models with one id the first stays."""
    return b'{"object":"list","data":' + jsontext.join_items(_first(lists)) + b"}"


def _first(lists: Iterable[Told]) -> Iterator[bytes]:
    seen: set[str] = set()
    for may_tell, models in lists:
        for model in models:
            if model.id not in seen and may_tell(model.id):
                seen.add(model.id)
                yield model.raw
