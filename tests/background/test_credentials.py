"""Whose key is sent for whom, and that nobody can read it anywhere."""

from __future__ import annotations

from proxy.background import credentials
from proxy.background.credentials import MAX_TENANTS, Credentials

ANONYMOUS = "anonymous"


def test_a_tenants_key_is_that_of_its_latest_request() -> None:
    known = Credentials(ANONYMOUS)
    assert known.of("tenant") is None
    known.remember("tenant", [(b"authorization", b"Bearer old")])
    known.remember("other", [(b"authorization", b"Bearer other")])
    known.remember("tenant", [(b"authorization", b"Bearer new")])
    assert known.of("tenant") == [(b"authorization", b"Bearer new")]


def test_only_what_says_who_pays_is_kept() -> None:
    known = Credentials(ANONYMOUS)
    paying = [
        (b"api-key", b"k"),
        (b"x-api-key", b"k"),
        (b"openai-organization", b"org"),
        (b"openai-project", b"proj"),
    ]
    others = [(b"x-session-id", b"s"), (b"cookie", b"c"), (b"x-user-id", b"u"), (b"host", b"h")]
    known.remember("tenant", [*others, *paying])
    assert known.of("tenant") == paying


def test_a_tenant_that_sends_no_key_needs_none() -> None:
    known = Credentials(ANONYMOUS)
    known.remember("single", [(b"content-type", b"application/json")])
    assert known.of("single") == []
    assert known.of(ANONYMOUS) == []


def test_where_the_proxy_has_a_key_it_is_sent_for_all_and_no_other_is_kept() -> None:
    known = Credentials(ANONYMOUS, "sk-ours")
    known.remember("app", [(b"authorization", b"Bearer sk-app")])
    assert known.of("app") == known.of("another") == [(b"Authorization", b"Bearer sk-ours")]
    assert known.of(ANONYMOUS) == [(b"Authorization", b"Bearer sk-ours")]


def test_the_tenants_not_heard_of_for_longest_are_forgotten() -> None:
    known = Credentials(ANONYMOUS)
    for number in range(MAX_TENANTS):
        known.remember(f"t{number}", [(b"api-key", b"k")])
    known.remember("t0", [(b"api-key", b"k")])
    known.remember("one more", [(b"api-key", b"k")])
    assert known.of("t1") is None
    assert known.of("t0") is not None
    assert repr(known) == f"<Credentials of {credentials.MAX_TENANTS} tenants>"


def test_no_representation_shows_a_key() -> None:
    known = Credentials(ANONYMOUS, "sk-secret-1")
    tenants = Credentials(ANONYMOUS)
    tenants.remember("tenant", [(b"api-key", b"sk-secret-2")])
    assert "secret" not in f"{known!r} {known} {tenants!r} {tenants}"
