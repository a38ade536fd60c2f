"""Figures over time, for eyes and for screen readers."""

from __future__ import annotations

import pytest

from tests.support.browser.browsing import Console, expect

pytestmark = pytest.mark.one_back_end


async def test_tokens_and_latency_are_shown_over_time(visit: Console) -> None:
    for number in range(3):
        await visit.chat(f"talk-{number}", "How are you?", user="kim")
    await visit.sign_in("#/stats")
    page = visit.page
    tiles = page.locator(".tile")
    await expect(tiles.filter(has_text="Exchanges")).to_contain_text("3")
    await expect(tiles.filter(has_text="Completion")).to_contain_text("15")
    await expect(page.locator("canvas")).to_have_count(4)
    await visit.shot("stats")


async def test_every_chart_is_there_as_a_table(visit: Console) -> None:
    await visit.chat("talk", "How are you?")
    await visit.sign_in("#/stats")
    page = visit.page
    table = page.locator("figure").filter(has_text="Tokens").first
    await table.get_by_text("Show as a table").click()
    await expect(table.get_by_role("columnheader", name="Completion")).to_be_visible()
    rows = table.locator("tbody tr")
    await expect(rows).to_have_count(30)
    await expect(rows.first.get_by_role("cell").last).to_have_text("5")


async def test_the_time_and_the_person_can_be_chosen(visit: Console) -> None:
    await visit.chat("of-kim", "How are you?", user="kim")
    await visit.chat("of-alex", "How are you?", user="alex")
    await visit.sign_in("#/stats")
    page = visit.page
    exchanges = page.locator(".tile").filter(has_text="Exchanges")
    await expect(exchanges).to_contain_text("2")
    await page.get_by_label("Of user").fill("kim")
    await expect(exchanges).to_contain_text("1")
    async with page.expect_response(lambda got: "bucket=hour" in got.url and "days=1&" in got.url):
        await page.get_by_role("button", name="24 hours").click()
    await expect(page.get_by_role("button", name="24 hours")).to_have_attribute(
        "aria-pressed", "true"
    )


async def test_where_there_is_nothing_no_chart_is_drawn(visit: Console) -> None:
    await visit.sign_in("#/stats")
    await expect(visit.page.get_by_text("No exchanges in this time")).to_be_visible()
    await expect(visit.page.locator("canvas")).to_have_count(0)
    await expect(visit.page.get_by_role("heading", name="Background work")).to_be_visible()


async def test_charts_begin_where_counting_begins(
    visit: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.memory_api.overview.stats.MAX_EXCHANGES", 2)
    for number in range(4):
        await visit.chat(f"talk-{number}", "How are you?")
    await visit.sign_in("#/stats")
    page = visit.page
    await expect(page.locator(".note")).to_contain_text("Counted since")
    await expect(page.locator(".tile").filter(has_text="Exchanges")).to_contain_text("2")
    table = page.locator("figure").filter(has_text="Exchanges").first
    await table.get_by_text("Show as a table").click()
    await expect(table.locator("tbody tr")).to_have_count(1)
    await expect(page.locator("canvas")).to_have_count(4)
    await visit.shot("stats-counted-since")
