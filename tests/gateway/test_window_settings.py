"""Settings of a window that change while sessions go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rig import Talk, rig
from tests.support.store.places import Places

SMALL = {"memory__window": "message_window", "memory__max_messages": 2, "memory__evict_to": 1.0}


@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_a_window_of_everything_shows_what_a_smaller_one_had_left_out(
    tmp_path: Path, places: Places, store: str
) -> None:
    url = places.of(store, tmp_path).url
    async with rig(tmp_path, store__url=url, **SMALL) as before:
        talk = Talk(before, "s", {})
        await talk.say("u1", "a1")
        await talk.say("u2", "a2")
        assert await talk.say("u3", "a3") == "u2 a2 u3"
    async with rig(tmp_path, store__url=url, memory__window="all") as wide:
        talk = Talk(wide, "s", {})
        assert await talk.say("u4", "a4") == "u1 a1 u2 a2 u3 a3 u4"
        assert await talk.say("u5", "a5") == "u1 a1 u2 a2 u3 a3 u4 a4 u5"
    async with rig(tmp_path, store__url=url, **SMALL) as again:
        assert await Talk(again, "s", {}).say("u6", "a6") == "u5 a5 u6"
