"""How what was found becomes the block of a prompt: as much of it as fits, and no less."""

from __future__ import annotations

import pytest

from proxy.chat.models.tokens import Tokenizers
from proxy.gateway.prompt.recall_step import MIN_ROOM, RecallBlock
from proxy.recall.results import RecallHit, Recollection

COUNT = Tokenizers().counter_for("scripted-1").count_lines


def found(seq: int, estimated: float) -> RecallHit:
    """A passage that is estimated at so many times its tokens."""
    text = f"On day {seq} we walked to the harbour. " * (1 + seq % 3)
    tokens = int(estimated * COUNT(text))
    return RecallHit("passage", text, f"x{seq}.0", "s", seq, "user", tokens, 0.0)


@pytest.mark.parametrize("estimated", [0.7, 1.0, 1.3])
def test_what_estimates_leave_free_is_filled(estimated: float) -> None:
    passages = [found(seq, estimated) for seq in range(1, 90, 2)]
    for budget in range(200, 700, 9):
        made = RecallBlock.of(Recollection(tuple(passages)), "new", COUNT, budget)
        assert budget - MIN_ROOM < made.tokens <= budget
        assert [one for one in passages if one in made.recollection.passages] == [
            *made.recollection.passages
        ]


def test_nothing_is_made_of_nothing() -> None:
    assert not RecallBlock.of(Recollection(), "new", COUNT, 500)
    assert not RecallBlock.of(Recollection((found(1, 1.0),)), "new", COUNT, 20)
