"""Days are told in the time zone of who asks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from proxy.recall.notes.notes import with_notes
from proxy.recall.query.dates import day_term, utc_offset
from proxy.recall.query.query import RecallOptions
from proxy.recall.query.question import read_question
from proxy.recall.ranking.packing import NAMES_DAY
from proxy.recall.results import RecallHit, passage_lines
from tests.support.store.passages import Memory, said

CALIFORNIA = ZoneInfo("America/Los_Angeles")
JAPAN = ZoneInfo("Asia/Tokyo")
EVENING = datetime(2026, 11, 18, 20, 10, tzinfo=CALIFORNIA).timestamp()
"""It is the 19th in UTC."""


@pytest.mark.parametrize(
    ("zone", "month", "hours"),
    [(CALIFORNIA, 1, -8), (CALIFORNIA, 7, -7), (JAPAN, 1, 9), (None, 1, 0)],
)
def test_clocks_are_ahead_of_utc_by_what_they_are_on_that_day(
    zone: ZoneInfo | None, month: int, hours: int
) -> None:
    assert utc_offset(datetime(2026, month, 1, tzinfo=UTC).timestamp(), zone) == hours * 3600


def test_a_passage_stands_below_its_day_there_and_so_does_what_it_names() -> None:
    text = "My tooth broke yesterday, tomorrow I see Dr. Nguyen."
    one = RecallHit("passage", text, "x1.0", "s", 1, "user", 10, EVENING, flags=NAMES_DAY)
    (there,) = with_notes(
        [replace(one, utc_offset=utc_offset(EVENING, CALIFORNIA))], EVENING + 90 * 86_400
    )
    assert there.note == "yesterday = 2026-11-17; tomorrow = 2026-11-19"
    assert passage_lines([there], own="").startswith("[2026-11-18 Wed]")
    assert passage_lines([one], own="").startswith("[2026-11-19 Thu]")


def test_a_question_reaches_all_of_its_day_there() -> None:
    def days(zone: ZoneInfo | None) -> tuple[bytes, ...]:
        return read_question("What did I say yesterday?", (), EVENING, zone).day_terms

    in_utc = [day_term(date(2026, 11, day)) for day in (16, 17, 18, 19)]
    assert days(CALIFORNIA) == (in_utc[1], in_utc[2])
    assert days(JAPAN) == (in_utc[1], in_utc[2])
    assert days(None) == (in_utc[2],)


async def test_what_is_recalled_is_told_in_the_zone_of_the_profile(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat is red.", "Fine.", user="kai"))
    zone = timezone(timedelta(hours=-8))
    for options, day in ((RecallOptions(zone=zone), "1969-12-31"), (RecallOptions(), "1970-01-01")):
        found = await remembering.recall("Is my boat red?", options=options)
        assert passage_lines(found.passages, own="").startswith(f"[{day}")
