"""What is known of models, from the price list that genai-prices brings along.

The network is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

_LONGEST_NAME = 200


def known(model: str | None) -> Iterator[ModelInfo]:
    """The entries that a model's name may mean, the most likely first.

    Names with a vendor before them (``openai/gpt-4o``) are looked up as OpenRouter's, then without
    the vendor.
    """
    if not model or len(model) > _LONGEST_NAME:
        return
    name = model.lower()
    yield from _entry(name)
    if "/" in name:
        yield from _entry(name, at="openrouter")
        yield from _entry(name.rpartition("/")[2])


def _entry(name: str, at: str | None = None) -> Iterator[ModelInfo]:
    # Not the snapshot's own lookup: it remembers every name for ever, and names come from clients.
    providers = get_snapshot().providers
    for provider in providers:
        if (provider.id == at) if at else _serves(provider, name):
            model = provider.find_model(name, all_providers=providers)
            if model is not None:
                yield model
            return


def _serves(provider: Provider, name: str) -> bool:
    return provider.model_match is not None and provider.model_match.is_match(name)
