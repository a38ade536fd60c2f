"""Upstreams' lists of models: reads them with context windows, and merges them.

Pure.  Entries keep their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from proxy.chat import jsontext

MAX_BYTES = 8 * 1024 * 1024
"""Limit of a list: the largest known ones have 1 MiB."""

MAX_MODELS = 10_000

MAX_TOKENS = 1_000_000_000

WINDOW_FIELDS = (
    "max_model_len",  # vLLM, SGLang: as it was started
    "n_ctx",  # llama.cpp, in ``meta``: as it was started
    "loaded_context_length",  # LM Studio: as it was loaded
    "context_length",  # OpenRouter, Together, Fireworks
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "max_input_tokens",  # Anthropic
    "n_ctx_train",  # llama.cpp, in ``meta``: what the model could have
)
"""Fields with a model's context window; those of the running server before those of the model."""

WINDOW_HOLDERS = ("meta", "top_provider")
"""Objects in an entry that may have these fields."""


class ListedModel(NamedTuple):
    """An entry of a list: its JSON, and its context window in tokens if it has one."""

    id: str
    raw: bytes
    window: int | None


FilteredList = tuple[Callable[[str], bool], list[ListedModel]]
"""A filter by model id, and the list that it is applied to."""


def read_models(body: bytes) -> list[ListedModel] | None:
    """The entries with an id, in order; None if ``body`` is no list of models.  Slow if large."""
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
    holders = [
        entry,
        *(each for name in WINDOW_HOLDERS if isinstance(each := entry.get(name), dict)),
    ]
    said = (_tokens(holder.get(name)) for name in WINDOW_FIELDS for holder in holders)
    return next(filter(None, said), None)


def _tokens(said: object) -> int | None:
    if isinstance(said, bool) or not isinstance(said, int):
        return None
    return said if 0 < said <= MAX_TOKENS else None


def merged(lists: Iterable[FilteredList]) -> bytes:
    """One list in OpenAI's format; of entries with the same id the first is kept."""
    return b'{"object":"list","data":' + jsontext.join_items(_first(lists)) + b"}"


def _first(lists: Iterable[FilteredList]) -> Iterator[bytes]:
    seen: set[str] = set()
    for may_tell, models in lists:
        for model in models:
            if model.id not in seen and may_tell(model.id):
                seen.add(model.id)
                yield model.raw
