"""Whether a page that sends a request is trusted, by what its browser says of it."""

from __future__ import annotations

import pytest

from proxy.wire.hosts import Trusted, is_same_site

NOBODY = Trusted()
SOME = Trusted.of(
    ("https://Chat.example",), ("Chat.lan", "10.0.0.5:3000", "[fd00::5]", "app.example")
)


def fields(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in pairs]


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "http://localhost:3000",
        "https://LOCALHOST:3000",
        "http://127.0.0.1:5173",
        "http://127.9.9.9",
        "http://[::1]:8080",
        "tauri://localhost",
    ],
)
def test_a_page_of_this_machine_is_trusted(origin: str) -> None:
    host = ("host", "proxy.lan")
    assert NOBODY.admits(fields(host, ("origin", origin), ("sec-fetch-site", "cross-site")))
    assert SOME.admits(fields(host, ("origin", origin)))


FOREIGN = [
    "http://evil.example",
    "null",
    "",
    "*",
    "file://",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example#localhost",
    "http://localhost@evil.example",
    "http://0.0.0.0:8080",
    "http://192.168.1.5",
    "http://localhost, http://evil.example",
    "localhost",
    "http://chat.lan.evil.example",
    "http://10.0.0.5",
    "http://[::ffff:192.168.1.5]",
    "http://[::1",
    "http://\u0131localhost",
]


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("host", ["127.0.0.1:8080", "chat.lan", "evil.example"])
def test_a_page_from_elsewhere_is_not_trusted_whatever_the_host(origin: str, host: str) -> None:
    said = fields(("host", host), ("origin", origin))
    assert not SOME.admits(said)
    assert not SOME.admits([*said, *fields(("sec-fetch-site", "same-origin"))])


@pytest.mark.parametrize(
    "origin",
    [
        "https://chat.example",
        "http://chat.lan",
        "https://chat.lan:9443",
        "http://10.0.0.5:3000",
        "http://[fd00::5]:3000",
        "app://app.example",
    ],
)
def test_a_page_that_is_named_is_trusted(origin: str) -> None:
    assert SOME.admits(fields(("host", "x"), ("origin", origin)))
    assert not NOBODY.admits(fields(("host", "x"), ("origin", origin)))
    assert Trusted.of(("*",), ()).admits(fields(("origin", origin)))


def test_of_several_origins_each_counts() -> None:
    good, bad = ("origin", "http://localhost"), ("origin", "http://evil.example")
    assert NOBODY.admits(fields(good, good))
    assert not NOBODY.admits(fields(good, bad))
    assert not NOBODY.admits(fields(bad, good))


@pytest.mark.parametrize(
    ("host", "site", "trusted"),
    [
        ("127.0.0.1:8080", "same-origin", True),
        ("localhost", "none", True),
        ("chat.lan:8080", "same-origin", True),
        ("127.0.0.1:8080", "same-site", False),
        ("127.0.0.1:8080", "cross-site", False),
        ("127.0.0.1:8080", "new-word", False),
        ("127.0.0.1:8080", "", False),
        ("evil.example", "same-origin", False),
        ("evil.example", "none", False),
        ("", "none", False),
    ],
)
def test_without_an_origin_the_host_decides(host: str, site: str, trusted: bool) -> None:
    assert SOME.admits(fields(("host", host), ("sec-fetch-site", site))) is trusted


def test_two_hosts_or_two_sites_are_not_trusted() -> None:
    own = ("sec-fetch-site", "same-origin")
    assert not SOME.admits(fields(("host", "localhost"), ("host", "evil.example"), own))
    assert not SOME.admits(fields(("host", "localhost"), own, ("sec-fetch-site", "cross-site")))
    assert not SOME.admits(fields(own))


@pytest.mark.parametrize("host", ["evil.example", "proxy.lan", "127.0.0.1"])
def test_a_program_is_trusted_wherever_it_calls(host: str) -> None:
    assert NOBODY.admits(fields(("host", host), ("user-agent", "curl")))


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://127.0.0.1:3000", False),
        ("http://localhost:8080", False),
        ("http://evil.example", False),
        ("null", False),
    ],
)
def test_a_page_of_this_site_has_its_host_as_origin(origin: str, own: bool) -> None:
    assert is_same_site(fields(("host", "127.0.0.1:8080"), ("origin", origin))) is own
