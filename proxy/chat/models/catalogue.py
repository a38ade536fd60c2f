"""What models are known with: their windows and their prices, of a list that comes as a package.

Loaded when a model is first asked about: the package brings an HTTP client along, to fetch newer
lists with.  The network is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

_LONGEST_NAME = 200


def window_of(model: str | None) -> int | None:
    """Tokens that a model's prompt and answer may have together, None where it is not known."""
    return next((entry.context_window for entry in _known(model) if entry.context_window), None)


def micro_usd(model: str, input_tokens: int, output_tokens: int, now: float) -> int:
    """The list price of a request at ``now`` (Unix seconds), in millionths of a US dollar.

    0 for models that are not known, or whose price is not.
    """
    moment = datetime.fromtimestamp(now, UTC)
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    prices = (_price(entry, usage, moment) for entry in _known(model))
    return next(filter(None, prices), 0)


def _price(entry: ModelInfo, usage: Usage, moment: datetime) -> int:
    try:
        price = entry.get_prices(moment).calc_price(usage)["total_price"]
    except (ValueError, IndexError):  # an entry without a price for tokens
        return 0
    return round(price * 1_000_000)


def _known(model: str | None) -> Iterator[ModelInfo]:
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
