"""The operator's template, filled in."""

from __future__ import annotations

import pytest

from proxy.settings.learned import SummarySettings
from proxy.summary.lines import fill_template


def filled(prompt: str, **more: object) -> str:
    settings = SummarySettings.model_validate({"prompt": prompt, **more})
    return fill_template(settings, "OLD", "NEW")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("{summary}|{new_lines}", "OLD|NEW"),
        ("{new_lines}{summary}{new_lines}", "NEWOLDNEW"),
        ("{summary}{new_lines} in {max_tokens} tokens", "OLDNEW in 500 tokens"),
        ("{summary}{new_lines} in {max_words} words", "OLDNEW in 300 words"),
        ('{"a": {}} {{summary}} {new_lines} {other} {0}', '{"a": {}} {OLD} NEW {other} {0}'),
        ("{summary}{new_lines}{focus}!", "OLDNEW!"),
    ],
)
def test_variables_are_replaced_and_nothing_else(prompt: str, expected: str) -> None:
    assert filled(prompt) == expected


def test_what_is_put_in_is_not_searched() -> None:
    settings = SummarySettings(prompt="{summary}/{new_lines}", focus="{summary}")
    text = fill_template(settings, "{new_lines}{focus}", "{summary}\\1")
    assert text.endswith("{new_lines}{focus}/{summary}\\1")


def test_a_focus_goes_where_the_template_says() -> None:
    assert filled("{summary}{new_lines}: {focus}", focus="names") == "OLDNEW: names"


def test_a_focus_without_a_place_has_a_line_of_its_own() -> None:
    first, *rest = filled("{summary}\n{new_lines}", focus="names").splitlines()
    assert first.endswith(": names")
    assert rest == ["", "OLD", "NEW"]


def test_the_first_summary_has_none_before_it() -> None:
    settings = SummarySettings(prompt="So far:\n{summary}\nNew:\n{new_lines}")
    assert fill_template(settings, "", "Human: hi") == "So far:\n(none)\nNew:\nHuman: hi"


def test_the_template_that_comes_with_the_proxy_is_filled_completely() -> None:
    text = fill_template(SummarySettings(), "OLD", "NEW")
    assert "\nOLD\n" in text
    assert "\nNEW\n" in text
    assert "{" not in text
    assert "at most\n300 words" in text and "tokens" not in text
