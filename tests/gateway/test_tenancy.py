"""Whose memory a request may touch: by its key alone, and no key means another's."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote

import pytest

from proxy.errors import ProxyError, RawHeaders
from proxy.gateway.routes import route
from proxy.tenancy import (
    ANONYMOUS,
    SINGLE,
    Client,
    Mode,
    Tenancy,
    credential,
    digest_of,
)

KEY, OTHER = b"sk-alice", b"sk-bob"


def sha256(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


def bearer(token: bytes) -> RawHeaders:
    return [(b"authorization", b"Bearer " + token)]


def code(error: pytest.ExceptionInfo[ProxyError]) -> tuple[int, str]:
    return error.value.status, error.value.code


# The credential


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        pytest.param([], None, id="none"),
        pytest.param([(b"authorization", b"Bearer k")], b"k", id="bearer"),
        pytest.param([(b"authorization", b"bearer   k ")], b"k", id="scheme-in-any-case"),
        pytest.param([(b"authorization", b"Basic dTpw")], b"dTpw", id="basic"),
        pytest.param([(b"authorization", b"k")], b"k", id="bare"),
        pytest.param([(b"authorization", b"Custom k")], b"Custom k", id="unknown-scheme"),
        pytest.param([(b"authorization", b"Bearer")], None, id="scheme-alone"),
        pytest.param([(b"authorization", b"Bearer ")], None, id="empty-bearer"),
        pytest.param([(b"authorization", b"")], None, id="empty"),
        pytest.param([(b"api-key", b"k")], b"k", id="azure"),
        pytest.param([(b"x-api-key", b" k ")], b"k", id="anthropic"),
        pytest.param([(b"api-key", b""), (b"x-api-key", b"k")], b"k", id="empty-ones-do-not-count"),
        pytest.param([(b"api-key", b"k"), (b"authorization", b"Bearer k")], b"k", id="same-twice"),
        pytest.param([(b"authorization", b"Bearer k")] * 2, b"k", id="repeated"),
    ],
)
def test_the_key_is_found_in_any_of_three_headers(headers: RawHeaders, token: bytes | None) -> None:
    assert credential(headers) == token


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([*bearer(KEY), (b"api-key", OTHER)], id="bearer-and-api-key"),
        pytest.param([(b"api-key", KEY), (b"x-api-key", OTHER)], id="api-key-and-x-api-key"),
        pytest.param([*bearer(KEY), *bearer(OTHER)], id="bearer-twice"),
        pytest.param([*bearer(KEY), (b"api-key", KEY), (b"x-api-key", OTHER)], id="third-differs"),
    ],
)
@pytest.mark.parametrize("mode", ["key", "single"])
def test_two_different_keys_are_refused(headers: RawHeaders, mode: Mode) -> None:
    with pytest.raises(ProxyError) as caught:
        Tenancy(mode, admin_key="root").caller(headers)
    assert code(caught) == (400, "invalid_header")


# Modes


def test_the_tenant_is_the_hash_of_the_key() -> None:
    tenancy = Tenancy("key")
    assert tenancy.caller(bearer(KEY)).tenant == sha256(KEY) == digest_of(KEY)
    assert tenancy.caller([(b"api-key", KEY)]).tenant == sha256(KEY)
    assert tenancy.caller(bearer(OTHER)).tenant != sha256(KEY)


def test_no_key_is_anonymous() -> None:
    assert Tenancy("key").caller([]).tenant == ANONYMOUS


def test_a_key_that_is_called_anonymous_is_not_anonymous() -> None:
    assert Tenancy("key").caller(bearer(b"anonymous")).tenant != ANONYMOUS


def test_single_is_one_tenant_whatever_the_key() -> None:
    tenants = {Tenancy("single").caller(x).tenant for x in ([], bearer(KEY), bearer(OTHER))}
    assert tenants == {SINGLE}


CLIENTS = Tenancy(
    "clients",
    [
        Client("web", (sha256(KEY), sha256(b"new")), ("support",), ("chat/completions", "models")),
        Client("batch", (sha256(OTHER),), ("*",), ("embeddings",)),
    ],
    upstream_key="sk-upstream",
    admin_key="root",
)


def test_a_clients_keys_are_one_tenant_so_that_they_can_be_rotated() -> None:
    assert CLIENTS.caller(bearer(KEY)).tenant == CLIENTS.caller(bearer(b"new")).tenant == "web"
    assert CLIENTS.caller(bearer(OTHER)).tenant == "batch"


@pytest.mark.parametrize("headers", [[], bearer(b"unknown"), bearer(sha256(KEY).encode())])
def test_an_unknown_key_is_refused(headers: RawHeaders) -> None:
    with pytest.raises(ProxyError) as caught:
        CLIENTS.caller(headers)
    assert code(caught) == (401, "invalid_api_key")


@pytest.mark.parametrize("mode", ["key", "single", "clients"])
@pytest.mark.parametrize("name", [b"authorization", b"api-key", b"x-api-key"])
def test_the_admin_key_opens_no_relay(mode: Mode, name: bytes) -> None:
    tenancy = Tenancy(mode, admin_key="root")
    with pytest.raises(ProxyError) as caught:
        tenancy.caller([(name, b"root")])
    assert code(caught) == (401, "invalid_api_key")
    assert tenancy.is_admin([(name, b"root")])


@pytest.mark.parametrize("headers", [[], bearer(b"roo"), bearer(b"root2"), bearer(b"")])
def test_no_other_key_is_the_administrators(headers: RawHeaders) -> None:
    assert not CLIENTS.is_admin(headers)
    assert not Tenancy("key").is_admin(headers)


# What a client may use


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (b"/v1/chat/completions", True),
        (b"/v1/models", True),
        (b"/v1/models/gpt-4o", True),
        (b"/openai/deployments/d/chat/completions", True),
        (b"/s/x/v1/chat/completions", True),
        (b"/v1/modelsandmore", False),
        (b"/v1/chat", False),
        (b"/v1/chat/completions/../files", False),
        (b"/v1/chat/completions/%2e%2E/files", False),
        (b"/v1/models/%252e%252e/files", False),
        (b"/v1/models/x%2F..%2f..%2Ffiles", False),
        (b"/v1/models/..;/files", False),
        (b"/v1/models/..%5Cfiles", False),
        (b"/v1/models/./x", False),
        (b"/v1/models/...", True),
        (b"/v1/models/gpt..4%2Fo", True),
        (b"/v1/embeddings", False),
        (b"/v1/files", False),
        (b"/v1/fine_tuning/jobs", False),
        (b"/v1/", False),
    ],
)
def test_a_client_reaches_only_its_paths(path: bytes, allowed: bool) -> None:
    client, found = CLIENTS.caller(bearer(KEY)).client, route(path)
    assert client is not None and found is not None
    assert found.allowed_by("POST", client.allowed_paths) is allowed


@pytest.mark.parametrize(
    ("key", "profile", "allowed"),
    [(KEY, "support", True), (KEY, "", True), (KEY, "other", False), (OTHER, "other", True)],
)
def test_a_client_uses_only_its_profiles(key: bytes, profile: str, allowed: bool) -> None:
    client = CLIENTS.caller(bearer(key)).client
    assert client is not None
    if allowed:
        return client.may_use(profile)
    with pytest.raises(ProxyError) as caught:
        client.may_use(profile)
    assert code(caught) == (403, "profile_not_allowed")


# What the upstream gets


def test_a_clients_key_is_replaced_by_the_upstreams() -> None:
    headers = [(b"x-a", b"1"), *bearer(KEY), (b"x-api-key", KEY), (b"x-b", b"2")]
    sent = CLIENTS.credentials_upstream(headers, CLIENTS.caller(headers))
    assert sent == [(b"x-a", b"1"), (b"x-b", b"2"), (b"authorization", b"Bearer sk-upstream")]


def test_an_azure_client_gets_an_azure_key() -> None:
    headers = [(b"api-key", KEY)]
    sent = CLIENTS.credentials_upstream(headers, CLIENTS.caller(headers))
    assert sent == [(b"api-key", b"sk-upstream")]


def test_a_client_of_anthropics_api_gets_its_key_where_that_api_has_it() -> None:
    version = (b"anthropic-version", b"2023-06-01")
    for own in ([(b"x-api-key", KEY)], bearer(KEY)):
        sent = CLIENTS.credentials_upstream([version, *own], CLIENTS.caller(own))
        assert sent == [version, (b"x-api-key", b"sk-upstream")]


@pytest.mark.parametrize("mode", ["key", "single"])
def test_without_clients_everyone_spends_a_key_of_their_own(mode: Mode) -> None:
    tenancy = Tenancy(mode, upstream_key="sk-upstream")
    headers = [(b"x-a", b"1"), *bearer(KEY)]
    assert tenancy.credentials_upstream(headers, tenancy.caller(headers)) == headers


def test_no_key_is_written_where_it_could_be_logged() -> None:
    caller = CLIENTS.caller(bearer(KEY))
    for shown in (repr(caller), repr(CLIENTS), repr(Tenancy("key").caller(bearer(KEY)))):
        assert KEY.decode() not in shown
        assert "sk-upstream" not in shown
        assert "root" not in shown


@pytest.mark.parametrize("scheme", [b"Token ", b"Bearer ", b"bearer  ", b"", b"ApiKey "])
def test_the_admin_key_is_refused_behind_any_scheme(scheme: bytes) -> None:
    tenancy = Tenancy("key", admin_key="open-sesame")
    with pytest.raises(ProxyError) as refusal:
        tenancy.caller([(b"authorization", scheme + b"open-sesame")])
    assert refusal.value.status == 401


ADMIN = b"open-sesame+1/x="


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"authorization", b'Bearer "%b"'),
        (b"authorization", b"Bearer,%b"),
        (b"authorization", b"Bearer\t%b"),
        (b"authorization", b"Digest username=x, response=%b, x=1"),
        (b"authorization", b"AWS4-HMAC-SHA256 Credential=%b/x"),
        (b"x-goog-api-key", b"%b"),
        (b"cookie", b"a=1; key=%b; b=2"),
        (b"cookie", b"a=1;key=%b"),
        (b"x-anything", b"{'key':'%b'}"),
        (b"proxy-authorization", b"Bearer %b"),
        (b"api-key", b" %b "),
        (b"referer", b"http://x/?key=%b&y=1"),
    ],
)
@pytest.mark.parametrize("mode", ["key", "single"])
def test_the_admin_key_is_refused_in_whatever_field_it_is(
    mode: Mode, name: bytes, value: bytes
) -> None:
    tenancy = Tenancy(mode, admin_key=ADMIN.decode())
    for key in (ADMIN, quote(ADMIN, safe="").encode()):
        with pytest.raises(ProxyError) as refusal:
            tenancy.caller([(name, value % key)])
        assert refusal.value.status == 401
    tenancy.caller([(name, value % b"another-key-as-long")])


def test_the_admin_key_is_refused_as_the_password_of_basic() -> None:
    packed = base64.b64encode(b"admin:" + ADMIN)
    with pytest.raises(ProxyError) as refusal:
        Tenancy("key", admin_key=ADMIN.decode()).caller([(b"authorization", b"Basic " + packed)])
    assert refusal.value.status == 401


@pytest.mark.parametrize("target", [b"/v1/models?key=%b", b"/v1/models/%b?x=1", b"/v1/x?a=1&k=%b"])
def test_the_admin_key_is_refused_in_path_and_query(target: bytes) -> None:
    tenancy = Tenancy("key", admin_key=ADMIN.decode())
    for key in (ADMIN, quote(ADMIN, safe="").encode()):
        with pytest.raises(ProxyError) as refusal:
            tenancy.caller([], target % key)
        assert refusal.value.status == 401


def test_what_only_looks_like_the_admin_key_is_somebodys() -> None:
    tenancy = Tenancy("key", admin_key="secret")
    for value in (b"Bearer secretary", b"Bearer topsecret", b"Bearer secre"):
        assert tenancy.caller([(b"authorization", value)]).tenant != ANONYMOUS


@pytest.mark.parametrize(
    "value", [b"," * 65_000, b"a" * 65_000, b"%41" * 20_000, b"Basic " * 9_000]
)
def test_looking_for_the_admin_key_compares_at_each_place_once(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0

    def counted(one: bytes, other: bytes) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr("proxy.gateway.identity.hmac.compare_digest", counted)
    Tenancy("key", admin_key=ADMIN.decode()).caller([(b"x", value)])
    assert compared <= len(value)
