"""Numbers and times in bodies: what counts as one."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from proxy.errors import ProxyError
from proxy.memory_api.body import decode_fields
from proxy.memory_api.shapes.items import ItemPlace
from tests.support.memory_api import SESSIONS, error_of, seed, talk

MEMORIES = "/memory/v1/users/kai/memories"


class Counted(msgspec.Struct):
    count: int


@pytest.mark.parametrize(("raw", "number"), [(b"3", 3), (b"3.0", 3), (b" -1e2 ", -100)])
def test_a_number_without_a_fraction_is_whole(raw: bytes, number: int) -> None:
    found = decode_fields(Counted, {"count": raw})
    assert isinstance(found, Counted)
    assert (found.count, type(found.count)) == (number, int)


@pytest.mark.parametrize("raw", [b"3.5", b"null", b"true", b'"3"', b"1e999", b"[]", b""])
def test_nothing_else_is(raw: bytes) -> None:
    with pytest.raises(ProxyError, match="count"):
        decode_fields(Counted, {"count": raw})


def test_a_name_does_not_end_in_a_line_break() -> None:
    place = {"namespace": rb'["recipes\n"]', "key": b'"gazpacho"'}
    with pytest.raises(ProxyError, match="namespace"):
        decode_fields(ItemPlace, place)


async def test_a_body_may_write_it_either_way(client: httpx.AsyncClient) -> None:
    await seed(client, "s", *talk("hello", "hi", "more", "yes"))
    answer = await client.post(f"{SESSIONS}/s/rewind", content=b'{"turns": 1.0}')
    assert answer.status_code == 200
    assert answer.json()["messages"] == 2
    answer = await client.post(f"{MEMORIES}/search", content=b'{"query": "tea", "limit": 2.0}')
    assert answer.status_code == 200


async def test_a_fact_from_before_the_calendar_is_refused(client: httpx.AsyncClient) -> None:
    early = {"text": "Likes tea.", "valid_from": -99_999_999_999.9}
    answer = await client.post(MEMORIES, json=early)
    assert answer.status_code == 400
    assert error_of(answer)["param"] == "valid_from"
    first = {"text": "Likes tea.", "valid_from": -62_135_596_800}
    assert (await client.post(MEMORIES, json=first)).status_code == 201
