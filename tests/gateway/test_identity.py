"""Which session, which user, and what of memory is asked: every header, and what is wrong in it."""

from __future__ import annotations

import pytest

from proxy.errors import ProxyError, RawHeaders
from proxy.gateway.identity import (
    NO_IDENTITY,
    Aliases,
    Identity,
    IdentityReader,
    without_memory_headers,
)
from proxy.memory.ids import is_id
from proxy.settings import Settings

SERVER = Settings().server
SESSION_ALIASES = tuple(name.lower().encode() for name in SERVER.session_aliases)
USER_ALIASES = tuple(name.lower().encode() for name in SERVER.user_aliases)
READER = IdentityReader(Aliases(SESSION_ALIASES, USER_ALIASES))


def read(*fields: tuple[bytes, bytes], path: bytes | None = None) -> Identity:
    return READER.identify(list(fields), path)


def refused(*fields: tuple[bytes, bytes], path: bytes | None = None) -> tuple[int, str]:
    with pytest.raises(ProxyError) as caught:
        read(*fields, path=path)
    return caught.value.status, caught.value.code


WRONG_IDS = {
    "empty": b"",
    "space": b"a b",
    "leading-space": b" a",
    "tab": b"a\tb",
    "null": b"a\x00b",
    "escape": b"a\x1bb",
    "delete": b"a\x7f",
    "latin": b"caf\xe9",
    "utf-8": "é".encode(),
    "dot": b".",
    "two-dots": b"..",
    "257": b"x" * 257,
    "10000": b"x" * 10_000,
}
RIGHT_IDS = {
    "one": b"x",
    "256": b"x" * 256,
    "three-dots": b"...",
    "punctuation": b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "looks-like-a-path": b"../../etc/passwd",
    "braces": b"{tenant:session}",
}


# Session and user


@pytest.mark.parametrize("value", RIGHT_IDS.values(), ids=RIGHT_IDS)
def test_an_id_is_1_to_256_visible_ascii_characters(value: bytes) -> None:
    assert is_id(value.decode())
    identity = read((b"x-session-id", value), (b"x-user-id", value))
    assert (identity.session, identity.user) == (value.decode(), value.decode())


@pytest.mark.parametrize("value", WRONG_IDS.values(), ids=WRONG_IDS)
def test_any_other_session_is_refused(value: bytes) -> None:
    assert refused((b"x-session-id", value)) == (400, "invalid_session_id")


@pytest.mark.parametrize("value", WRONG_IDS.values(), ids=WRONG_IDS)
def test_any_other_user_is_refused(value: bytes) -> None:
    assert refused((b"x-user-id", value)) == (400, "invalid_user_id")


@pytest.mark.parametrize("value", WRONG_IDS.values(), ids=WRONG_IDS)
@pytest.mark.parametrize("alias", [*SESSION_ALIASES, *USER_ALIASES])
def test_a_malformed_alias_is_ignored(alias: bytes, value: bytes) -> None:
    identity = read((alias, value))
    assert (identity.session, identity.user) == (None, None)


@pytest.mark.parametrize("alias", SESSION_ALIASES)
def test_an_alias_names_the_session(alias: bytes) -> None:
    assert read((alias, b"s")).session == "s"


@pytest.mark.parametrize("alias", USER_ALIASES)
def test_an_alias_names_the_user(alias: bytes) -> None:
    assert read((alias, b"u")).user == "u"


@pytest.mark.parametrize("first", range(len(SESSION_ALIASES)))
def test_of_several_aliases_the_first_in_order_counts_wherever_it_stands(first: int) -> None:
    fields = [(alias, b"s-" + alias) for alias in SESSION_ALIASES[first:]]
    expected = "s-" + SESSION_ALIASES[first].decode()
    assert read(*fields).session == read(*reversed(fields)).session == expected


def test_the_order_of_aliases_is_the_designs() -> None:
    assert SERVER.session_aliases == (
        "X-Conversation-Id",
        "X-Thread-Id",
        "X-OpenWebUI-Chat-Id",
        "Helicone-Session-Id",
        "X-Litellm-Session-Id",
        "X-Sm-Conversation-Id",
        "X-Claude-Code-Session-Id",
        "Thread-Id",
        "Session-Id",
        "X-Opencode-Session",
    )
    assert SERVER.user_aliases == ("X-OpenWebUI-User-Id", "Helicone-User-Id", "X-Sm-User-Id")


def test_behind_a_malformed_alias_the_next_one_counts() -> None:
    assert read((SESSION_ALIASES[0], b"a b"), (SESSION_ALIASES[1], b"s")).session == "s"


def test_the_header_itself_counts_before_any_alias() -> None:
    fields = ((SESSION_ALIASES[0], b"alias"), (b"x-session-id", b"s"))
    assert read(*fields).session == "s"
    fields = ((USER_ALIASES[0], b"alias"), (b"x-user-id", b"u"))
    assert read(*fields).user == "u"


def test_the_path_counts_before_all() -> None:
    fields = ((SESSION_ALIASES[0], b"alias"), (b"x-session-id", b"header"))
    assert read(*fields, path=b"path").session == "path"


def test_the_path_counts_even_where_the_header_is_malformed() -> None:
    assert read((b"x-session-id", b"a b"), path=b"path").session == "path"


def test_a_session_in_the_path_is_percent_encoded() -> None:
    assert read(path=b"a%2Fb%25c").session == "a/b%c"


@pytest.mark.parametrize("path", [b"", b".", b"..", b"%2e", b"%2E%2e", b"a%20b", b"%C3%A9", b"%00"])
def test_a_malformed_session_in_the_path_is_refused(path: bytes) -> None:
    assert refused(path=path) == (400, "invalid_session_id")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (b"x-session-id", "invalid_session_id"),
        (b"x-user-id", "invalid_user_id"),
        (b"x-memory-mode", "invalid_header"),
        (b"x-memory-rewind", "invalid_header"),
    ],
)
def test_a_header_that_comes_twice_with_two_values_is_refused(name: bytes, code: str) -> None:
    assert refused((name, b"1"), (name, b"2")) == (400, code)


def test_a_header_that_comes_twice_with_one_value_is_that_value() -> None:
    assert read((b"x-session-id", b"s"), (b"x-session-id", b"s")).session == "s"


def test_without_any_of_these_headers_there_is_no_memory() -> None:
    identity = read((b"authorization", b"Bearer k"), (b"x-other", b"1"))
    assert identity is NO_IDENTITY
    assert not identity.uses_memory


# What is asked


@pytest.mark.parametrize("mode", ["on", "read", "write", "off"])
def test_the_mode_is_one_of_four(mode: str) -> None:
    identity = read((b"x-session-id", b"s"), (b"x-memory-mode", mode.encode()))
    assert identity.mode == mode
    assert identity.uses_memory is (mode != "off")


@pytest.mark.parametrize("value", [b"ON", b" read ", b"Write"])
def test_case_and_space_around_a_word_do_not_matter(value: bytes) -> None:
    identity = read((b"x-session-id", b"s"), (b"x-memory-mode", value))
    assert identity.mode == value.decode().strip().lower()


def test_a_mode_without_a_session_is_no_memory() -> None:
    assert not read((b"x-memory-mode", b"on")).uses_memory


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-memory-mode", b""),
        (b"x-memory-mode", b"always"),
        (b"x-memory-mode", b"\xff"),
        (b"x-memory-history", b"some"),
        (b"x-memory-history", b""),
        (b"x-memory-max-tokens", b"-1"),
        (b"x-memory-max-tokens", b"1.5"),
        (b"x-memory-max-tokens", b"1e3"),
        (b"x-memory-max-tokens", b"many"),
        (b"x-memory-max-tokens", b"1_000"),
        (b"x-memory-max-tokens", b"9" * 5000),
        (b"x-memory-max-tokens", "٣".encode()),
        (b"x-memory-max-tokens", b""),
        (b"x-memory-rewind", b"-1"),
        (b"x-memory-rewind", b"0x1"),
        (b"x-memory-rewind", b""),
        (b"idempotency-key", b""),
        (b"idempotency-key", b"x" * 1025),
        (b"idempotency-key", b"a\x00b"),
        (b"idempotency-key", "é".encode()),
    ],
)
def test_a_value_that_is_not_what_it_should_be_is_refused(name: bytes, value: bytes) -> None:
    assert refused((b"x-session-id", b"s"), (name, value)) == (400, "invalid_header")


@pytest.mark.parametrize("value", [b"999999999", b"2147483648", b"9223372036854775807"])
def test_a_number_of_any_size_is_a_bound(value: bytes) -> None:
    """What programs say where they mean none: the largest of their own numbers."""
    identity = read((b"x-session-id", b"s"), (b"x-memory-max-tokens", value))
    assert identity.max_tokens == 999_999_999


def test_every_header_is_read() -> None:
    identity = read(
        (b"x-session-id", b"s"),
        (b"x-user-id", b"u"),
        (b"x-memory-mode", b"write"),
        (b"x-memory-profile", b" support "),
        (b"x-memory-max-tokens", b" 1000 "),
        (b"x-memory-history", b"delta"),
        (b"x-memory-rewind", b"2"),
        (b"idempotency-key", b"k 1"),
        (b"x-stainless-retry-count", b"1"),
    )
    assert identity == Identity(
        session="s",
        user="u",
        mode="write",
        profile="support",
        max_tokens=1000,
        history="delta",
        rewind=2,
        idempotency_key="k 1",
        retry=True,
    )


def test_what_is_not_said_has_its_default() -> None:
    assert read((b"x-session-id", b"s")) == Identity(session="s")


@pytest.mark.parametrize(("value", "retry"), [(b"0", False), (b"", False), (b"1", True)])
def test_a_retry_is_what_the_sdk_counts_above_zero(value: bytes, retry: bool) -> None:
    assert read((b"x-session-id", b"s"), (b"x-stainless-retry-count", value)).retry is retry


def test_zero_tokens_are_a_bound_and_no_header_is_none() -> None:
    assert read((b"x-session-id", b"s"), (b"x-memory-max-tokens", b"0")).max_tokens == 0
    assert read((b"x-session-id", b"s")).max_tokens is None


@pytest.mark.parametrize("mode", [None, b"off"])
def test_where_there_is_no_memory_an_idempotency_key_is_the_upstreams_alone(
    mode: bytes | None,
) -> None:
    fields: RawHeaders = [(b"idempotency-key", "é".encode())]
    if mode:
        fields += [(b"x-session-id", b"s"), (b"x-memory-mode", mode)]
    assert read(*fields).idempotency_key is None


# Headers that do not exist


@pytest.mark.parametrize("others", [[], [(b"x-session-id", b"s"), (b"x-memory-mode", b"off")]])
def test_a_misspelt_header_is_noticed_with_and_without_others(others: RawHeaders) -> None:
    assert read(*others).reason is None
    assert read(*others, (b"x-memory-mod", b"off")).reason == "unknown_header"
    assert read(*others, (b"x-memory", b"1"), (b"x-mem-mode", b"off")).reason is None


# What ends at the proxy


def test_our_headers_end_here_and_those_of_others_travel_on() -> None:
    others = [
        (b"x-session", b"1"),
        (b"x-memory", b"1"),
        (b"idempotency-key", b"k"),
        (b"x-stainless-retry-count", b"1"),
        *((alias, b"1") for alias in (*SESSION_ALIASES, *USER_ALIASES)),
    ]
    ours = [
        (b"x-session-id", b"s"),
        (b"x-user-id", b"u"),
        (b"x-memory-mode", b"on"),
        (b"x-memory-signature", b"t=1"),
        (b"x-memory-something-new", b"1"),
    ]
    mixed = [field for pair in zip(ours, others, strict=False) for field in pair]
    assert without_memory_headers(mixed + others[5:]) == others
