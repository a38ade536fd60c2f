"""What people see of chats in numbers, on every store: users, figures over time, entity tags."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.recalling import somebody
from tests.support.rig import Rig, Talk

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def look(talk: Talk, path: str, **query: Any) -> Any:
    answer = await talk.rig.client.get(f"/memory/v1/{path}", params=query, headers=talk.all_headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_person_who_chats_is_listed_first_and_counted(every: Rig) -> None:
    person = somebody(every)
    first, second = person.talk(), person.talk()
    for talk in (first, second, second):
        await person.says(talk, "My boat is red.")
    (newest,) = (await look(first, "users", limit=1))["data"]
    assert (newest["id"], newest["sessions"]) == (person.user, 2)
    whole = await look(first, f"users/{person.user}")
    sessions = (await look(first, "sessions", user=person.user))["data"]
    assert (whole["sessions"], whole["messages"]) == (2, 6)
    assert whole["tokens"] == sum(session["tokens"] for session in sessions)
    assert whole["last_active_at"] == newest["last_active_at"]


async def test_chats_are_counted_in_the_bucket_of_today(every: Rig) -> None:
    person = somebody(every)
    talk = person.talk()
    responses = [await person.says(talk, "My boat is red.") for _ in range(3)]
    usage = [response.json()["usage"] for response in responses]
    found = await look(talk, "stats", days=2, user=person.user)
    totals = found["totals"]
    assert (totals["sessions"], totals["exchanges"], totals["messages"]) == (1, 3, 6)
    assert totals["tokens"]["prompt"] == sum(each["prompt_tokens"] for each in usage)
    assert totals["tokens"]["completion"] == sum(each["completion_tokens"] for each in usage)
    injected = sum(int(response.headers["x-memory-tokens"]) for response in responses)
    assert totals["tokens"]["injected"] == injected > 0
    assert 0 < totals["latency_ms"]["p50"] <= totals["latency_ms"]["p95"]
    assert sum(each["exchanges"] for each in found["series"]) == 3


async def test_a_tag_is_the_same_until_something_is_said(every: Rig) -> None:
    person = somebody(every)
    talk = person.talk()
    await person.says(talk, "My boat is red.")
    url = f"/memory/v1/sessions/{talk.session}"
    read = await every.client.get(url, headers=talk.all_headers)
    had = {**talk.all_headers, "if-none-match": read.headers["etag"]}
    assert (await every.client.get(url, headers=had)).status_code == 304
    await person.says(talk, "And my house is blue.")
    assert (await every.client.get(url, headers=had)).status_code == 200
