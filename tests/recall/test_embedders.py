"""What of a text is embedded."""

from __future__ import annotations

import pytest

from proxy.recall.semantic.embedders import MAX_CHARACTERS, text_to_embed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(" My boat. ", "My boat.", id="as-it-is"),
        pytest.param(
            "x" * MAX_CHARACTERS + "y", "x" * MAX_CHARACTERS, id="no-more-than-a-model-reads"
        ),
        pytest.param(" \n", ".", id="never-nothing"),
        pytest.param("a\ud800", "a?", id="whole-characters"),
    ],
)
def test_the_beginning_is_embedded(text: str, expected: str) -> None:
    assert text_to_embed(text) == expected
