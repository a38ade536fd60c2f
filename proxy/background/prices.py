"""What tokens cost, by the price list that genai-prices brings along.  Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from genai_prices import Usage
from genai_prices.types import ModelInfo

from proxy.chat.catalog import known


def micro_usd(model: str, input_tokens: int, output_tokens: int, now: float) -> int:
    """The list price of a request at ``now`` (Unix seconds), in millionths of a US dollar.

    0 for models that are not known, or whose price is not.
    """
    moment = datetime.fromtimestamp(now, UTC)
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    prices = (_price(entry, usage, moment) for entry in known(model))
    return next(filter(None, prices), 0)


def _price(entry: ModelInfo, usage: Usage, moment: datetime) -> int:
    try:
        price = entry.get_prices(moment).calc_price(usage)["total_price"]
    except (ValueError, IndexError):  # an entry without a price for tokens
        return 0
    return round(price * 1_000_000)
