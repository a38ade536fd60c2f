"""What people see of chats in numbers, on every store: users, figures over time, entity tags."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.rig import Rig, Talk
from tests.support.talk.recalling import somebody
from tests.support.talk.words import messages
from tests.support.upstream.answers import USAGE, chat_completion, chat_stream, json_answer, sse

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


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_what_an_upstream_caches_is_counted_once_where_the_usage_comes_last_too(
    one: Rig, stream: bool
) -> None:
    details = {"cached_tokens": 100, "cache_write_tokens": 20}
    usage = {**USAGE, "prompt_tokens_details": details}
    before = await cache_counts(one)
    if stream:
        pieces = chat_stream(["a1"], include_usage=True)
        script = sse([piece.replace(dumped(USAGE), dumped(usage)) for piece in pieces])
    else:
        script = json_answer({**chat_completion("a1"), "usage": usage})
    answer = await one.talk().ask(messages("u1"), script, stream=stream)
    assert answer.status_code == 200
    after = await cache_counts(one)
    assert [a - b for a, b in zip(after, before, strict=True)] == [100, 20]


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


async def cache_counts(rig: Rig) -> list[float]:
    text = (await rig.client.get("/metrics")).text
    names = ("cached", "cache_write")
    found = [
        re.search(rf"^memory_upstream_{name}_tokens_total (\S+)", text, re.M) for name in names
    ]
    return [float(each[1]) for each in found if each is not None]
