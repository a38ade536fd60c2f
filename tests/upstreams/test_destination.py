"""What of a request goes to one of several upstreams: no key and no header of another."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.errors import RawHeaders
from proxy.upstreams.destination import BILLING_HEADERS, CHAT
from tests.support.upstream.several import destination

KEYS: RawHeaders = [
    (b"authorization", b"Bearer sk-client"),
    (b"api-key", b"sk-client"),
    (b"x-api-key", b"sk-client"),
    (b"x-goog-api-key", b"sk-client"),
    (b"openai-organization", b"org-client"),
    (b"openai-project", b"proj-client"),
]
OTHER: RawHeaders = [(b"accept", b"*/*"), (b"x-request-id", b"7"), (b"anthropic-beta", b"b")]
COOKIE = (b"cookie", b"session=of-another")


def test_a_clients_keys_stay_here() -> None:
    assert {name for name, _ in KEYS} == BILLING_HEADERS
    assert destination("there").headers([*KEYS, *OTHER, COOKIE], CHAT) == OTHER


def test_a_clients_keys_go_where_they_are_allowed_to_and_cookies_never() -> None:
    assert destination("there", client_keys=True).headers([*KEYS, COOKIE, *OTHER], CHAT) == [
        *KEYS,
        *OTHER,
    ]


@pytest.mark.parametrize(
    ("kind", "api", "sent"),
    [
        ("openai", CHAT, (b"Authorization", b"Bearer sk-up")),
        ("openai", "messages", (b"Authorization", b"Bearer sk-up")),
        ("anthropic", "messages", (b"x-api-key", b"sk-up")),
        ("anthropic", "models", (b"x-api-key", b"sk-up")),
        ("anthropic", CHAT, (b"Authorization", b"Bearer sk-up")),
        ("azure", CHAT, (b"api-key", b"sk-up")),
    ],
)
def test_its_own_key_is_sent_as_its_api_has_it(
    kind: Any, api: str, sent: tuple[bytes, bytes]
) -> None:
    found = destination("there", kind=kind, key="sk-up").headers([*KEYS, *OTHER], api)
    assert [each for each in found if each[0].lower() in BILLING_HEADERS] == [sent]


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [([], [b"2023-06-01"]), ([(b"anthropic-version", b"2030-01-01")], [b"2030-01-01"])],
)
def test_anthropics_api_is_told_a_version(sent: RawHeaders, arrives: list[bytes]) -> None:
    found = destination("there", kind="anthropic").headers(sent, "models")
    assert [value for name, value in found if name == b"anthropic-version"] == arrives


def test_the_operators_headers_stand_instead_of_the_clients() -> None:
    added = ((b"x-title", b"ours"), (b"user-agent", b"app"))
    sent = [(b"X-Title", b"theirs"), (b"accept", b"*/*")]
    there = destination("there", extra_headers=added)
    assert there.headers(sent, CHAT) == [(b"accept", b"*/*"), *added]


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (b"", b""),
        (b"a=1&b=2", b"a=1&b=2"),
        (b"a=1&key=sk-client", b"a=1"),
        (b"%6Bey=sk&API-KEY=sk&api_key=sk&access_token=sk&keys=1", b"keys=1"),
    ],
)
def test_a_clients_key_in_a_query_stays_here_too(sent: bytes, arrives: bytes) -> None:
    assert destination("there", key="sk-up").query(sent) == arrives
    assert destination("there", client_keys=True).query(sent) == sent


def test_no_representation_shows_a_key() -> None:
    shown = repr(destination("there", key="sk-secret", extra_headers=((b"x-token", b"secret"),)))
    assert "there" in shown
    assert "secret" not in shown
