"""What requests of our own say, and what the heads of their answers mean."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from proxy.wire.api import MAX_WAIT, bearer, is_permanent_refusal, json_headers, retry_after

NOW = 1_700_000_000.0


def test_a_request_says_no_more_than_it_must() -> None:
    headers = dict(json_headers(bearer("sk-1")))
    assert headers == {
        b"Content-Type": b"application/json",
        b"Accept": b"application/json",
        b"Accept-Encoding": b"identity",
        b"User-Agent": b"memory-proxy",
        b"Authorization": b"Bearer sk-1",
    }


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_key_none_is_sent(key: str | None) -> None:
    assert bearer(key) == []


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 499])
def test_a_status_about_the_request_refuses_it(status: int) -> None:
    assert is_permanent_refusal(status)


@pytest.mark.parametrize("status", [200, 302, 408, 409, 425, 429, 500, 503, 529])
def test_a_status_about_the_moment_does_not(status: int) -> None:
    assert not is_permanent_refusal(status)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("0", 0.0),
        ("-3", 0.0),
        ("1e9", MAX_WAIT),
        ("inf", MAX_WAIT),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        (formatdate(NOW + 1e8, usegmt=True), MAX_WAIT),
        ("nan", None),
        ("", None),
        ("soon", None),
        ("ü", None),
        ("Fri, 99 Foo 9999999 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_never_too_long(
    value: str, seconds: float | None
) -> None:
    assert retry_after([(b"Retry-After", value.encode("latin-1"))], NOW) == seconds


def test_no_retry_after_is_none() -> None:
    assert retry_after([(b"content-type", b"text/html")], NOW) is None
