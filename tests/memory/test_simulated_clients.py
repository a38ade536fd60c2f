"""Clients of every kind against the real decisions, with the truth known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.talk.simulator import PREFILL, VIEWS, Conversation

KINDS = [
    *VIEWS,
    "preamble",
    "own summary",
    "edit",
    "regenerate",
    "rewind",
    "retry",
    "interrupted",
    "prefilled",
]
WORDS = ("ok", "yes", "no", "thanks", "more")
MIXED = [kind for kind in KINDS if kind not in ("preamble", "no tool messages")]


def conversations(count: int, kinds: list[str], words: tuple[str, ...] = ()) -> list[Conversation]:
    return [Conversation(random.Random(seed), kinds, words).run(8) for seed in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_distinct_texts_are_never_wrong(kind: str) -> None:
    for seed, talk in enumerate(conversations(60, [kind])):
        assert not talk.wrong, (seed, talk.wrong[0])
        assert not talk.lost


def test_mixed_clients_with_distinct_texts_are_never_wrong() -> None:
    for seed, talk in enumerate(conversations(150, MIXED)):
        assert not talk.wrong, (seed, talk.wrong[0])
        assert not talk.lost


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(MIXED), min_size=1, max_size=15), st.randoms(use_true_random=False))
def test_any_mixture_of_clients_stores_and_sends_each_message_once_and_in_order(
    kinds: list[str], rng: random.Random
) -> None:
    """``wrong`` holds a sentence wherever what was sent or kept is not the truth, in order."""
    talk = Conversation(rng, MIXED).play(kinds)
    assert not talk.wrong
    assert not talk.lost
    once = [digest for digest in talk.memory.log if digest != PREFILL]
    assert len(once) == len(set(once))


@pytest.mark.parametrize("kind", KINDS)
def test_five_repeated_words_lose_no_message(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    talks = conversations(60, [kind], WORDS)
    wrong = sum(bool(talk.wrong) for talk in talks)
    with capsys.disabled():
        print(
            f"\nfive words, {kind}: {100 * wrong / len(talks):.1f} % end otherwise than the truth"
        )
    assert not [talk.lost for talk in talks if talk.lost]
