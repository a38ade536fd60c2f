"""What tokens cost: list prices of models that are known, nothing for others."""

from __future__ import annotations

import pytest
from genai_prices.data_snapshot import get_snapshot

from proxy.chat.models.catalogue import micro_usd

NOW = 1_780_000_000.0


@pytest.mark.parametrize("model", ["gpt-4o", "GPT-4o", "openai/gpt-4o", "gpt-4o-2024-08-06"])
def test_a_known_model_has_its_list_price(model: str) -> None:
    assert micro_usd(model, 1_000_000, 0, NOW) == 2_500_000
    assert micro_usd(model, 0, 1_000_000, NOW) == 10_000_000
    assert micro_usd(model, 1000, 100, NOW) == 3_500


@pytest.mark.parametrize("model", ["", "scripted-1", "my/own-model", "x" * 10_000, "gpt-4o\n"])
def test_what_is_not_known_costs_nothing(model: str) -> None:
    assert micro_usd(model, 1_000_000, 1_000_000, NOW) == 0


def test_no_tokens_cost_nothing() -> None:
    assert micro_usd("gpt-4o", 0, 0, NOW) == 0


def test_every_model_of_the_list_can_be_priced() -> None:
    names = [entry.id for provider in get_snapshot().providers for entry in provider.models]
    costs = [micro_usd(name, 1000, 100, NOW) for name in names]
    assert min(costs) == 0
    assert sum(cost > 0 for cost in costs) > len(names) / 2
