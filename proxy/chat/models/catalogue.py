"""Context windows and prices of known models, from the package genai-prices.

Imported on first use, since the package imports an HTTP client.  Never uses the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

_MAX_NAME = 200


def window_of(model: str | None) -> int | None:
    """The maximum of a model's prompt and answer together, in tokens; None if not known."""
    return next(
        (entry.context_window for entry in _matching_models(model) if entry.context_window), None
    )


def micro_usd(model: str, input_tokens: int, output_tokens: int, now: float) -> int:
    """The list price of a request at ``now`` (Unix seconds), in millionths of a US dollar.

    0 if the model or its price is not known.
    """
    moment = datetime.fromtimestamp(now, UTC)
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    prices = (_price(entry, usage, moment) for entry in _matching_models(model))
    return next(filter(None, prices), 0)


def _price(entry: ModelInfo, usage: Usage, moment: datetime) -> int:
    try:
        price = entry.get_prices(moment).calc_price(usage)["total_price"]
    except (ValueError, IndexError):  # an entry without a price for tokens
        return 0
    return round(price * 1_000_000)


def _matching_models(model: str | None) -> Iterator[ModelInfo]:
    """The entries for a model's name, the most likely first.

    Names with a vendor before them (``openai/gpt-4o``) are looked up as OpenRouter's, then without
    the vendor.
    """
    if not model or len(model) > _MAX_NAME:
        return
    name = model.lower()
    yield from _entry(name)
    if "/" in name:
        yield from _entry(name, provider_id="openrouter")
        yield from _entry(name.rpartition("/")[2])


def _entry(name: str, provider_id: str | None = None) -> Iterator[ModelInfo]:
    # The snapshot's own lookup caches every name without bound, and names come from clients.
    providers = get_snapshot().providers
    for provider in providers:
        if (provider.id == provider_id) if provider_id else _serves(provider, name):
            model = provider.find_model(name, all_providers=providers)
            if model is not None:
                yield model
            return


def _serves(provider: Provider, name: str) -> bool:
    return provider.model_match is not None and provider.model_match.is_match(name)
