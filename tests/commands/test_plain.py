"""Stored text cannot drive a terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from proxy.commands.output import line, plain


@given(st.text())
def test_no_control_is_left(text: str) -> None:
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    left = {c for c in plain(text) if unicodedata.category(c) in hidden}
    assert left <= set("\n\t\u200c\u200d")


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    assert len(line(text).splitlines()) <= 1


def test_families_of_emoji_stay_together() -> None:
    assert plain("👩‍👩‍👧 \x1b[2J") == "👩‍👩‍👧 ␛[2J"
