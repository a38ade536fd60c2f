"""Which header fields travel on."""

from __future__ import annotations

import pytest

from proxy.errors import ProxyError
from proxy.wire.headers import (
    check_framing,
    content_length,
    end_to_end,
    get,
    get_all,
    without_controls,
)

Fields = list[tuple[bytes, bytes]]

HOPS = [
    b"Connection",
    b"Keep-Alive",
    b"Proxy-Authenticate",
    b"Proxy-Authorization",
    b"Proxy-Connection",
    b"TE",
    b"Trailer",
    b"Transfer-Encoding",
    b"Upgrade",
]


@pytest.mark.parametrize("name", HOPS, ids=lambda name: name.decode())
@pytest.mark.parametrize("response", [False, True], ids=["request", "response"])
def test_hop_by_hop_fields_end_here_in_any_case(name: bytes, response: bool) -> None:
    fields = [(name, b"x"), (name.lower(), b"x"), (name.upper(), b""), (b"X-Kept", b"1")]
    assert end_to_end(fields, response=response) == [(b"X-Kept", b"1")]


@pytest.mark.parametrize("odd", [b"a\0b", b"a\x01b", b"a\x0bb", b"a\x7fb", b"a\nb"])
def test_a_header_that_could_not_be_sent_has_spaces(odd: bytes) -> None:
    assert without_controls([(b"X-Odd", odd), (b"X-Tab", b"a\t\xe9")]) == [
        (b"X-Odd", b"a b"),
        (b"X-Tab", b"a\t\xe9"),
    ]


def test_order_case_duplicates_and_empty_values_are_kept() -> None:
    fields = [(b"B", b"2"), (b"Set-Cookie", b"a=1"), (b"a", b""), (b"set-cookie", b"b=2")]
    assert end_to_end(fields, response=True) == fields


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param([b"X-One, x-two"], id="one-field"),
        pytest.param([b"x-one", b"keep-alive,X-TWO "], id="several-fields"),
        pytest.param([b"", b",x-one ,, x-two,"], id="empty-elements"),
    ],
)
def test_fields_that_connection_names_end_here(connection: list[bytes]) -> None:
    named = [(b"X-One", b"1"), (b"x-two", b"2"), (b"X-Two", b"3")]
    fields = [*named, *((b"Connection", value) for value in connection), (b"x-three", b"4")]
    assert end_to_end(fields) == [(b"x-three", b"4")]


def test_dropped_names_are_matched_in_any_case() -> None:
    fields = [(b"X-Session-Id", b"s"), (b"x-session-id", b"t"), (b"x-other", b"1")]
    assert end_to_end(fields, frozenset({b"x-session-id"})) == [(b"x-other", b"1")]


def test_a_request_loses_its_framing_and_authority_and_nothing_else() -> None:
    kept = [
        (b"user-agent", b"OpenAI/Python"),
        (b"accept-encoding", b"gzip, br"),
        (b"x-forwarded-for", b"10.0.0.1"),
        (b"content-encoding", b"gzip"),
        (b"alt-svc", b"clear"),
    ]
    gone = [(b"host", b"a"), (b"content-length", b"3"), (b"expect", b"100-continue")]
    assert end_to_end([*gone, *kept]) == kept


def test_a_response_keeps_its_length_and_loses_alternative_services() -> None:
    fields = [(b"Alt-Svc", b'h3=":443"'), (b"Content-Length", b"3"), (b"Server", b"x")]
    assert end_to_end(fields, response=True) == fields[1:]


def test_a_length_that_chunking_overrules_is_not_passed_on() -> None:
    fields = [(b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked"), (b"Server", b"x")]
    assert end_to_end(fields, response=True) == [(b"Server", b"x")]


def test_fields_are_found_in_any_case() -> None:
    fields = [(b"a", b"1"), (b"X-Thing", b"2"), (b"x-thing", b"3")]
    assert get(fields, b"x-thing") == b"2"
    assert get(fields, b"b") is None
    assert get_all(fields, b"x-thing") == [b"2", b"3"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", 0),
        (b"17", 17),
        (b"+17", None),
        (b"1_7", None),
        (b"", None),
        (b" 1", None),
        (b"9" * 30, None),
        ("١".encode(), None),
    ],
    ids=["zero", "number", "sign", "underscore", "empty", "space", "endless", "arabic"],
)
def test_a_length_is_plain_digits(value: bytes, expected: int | None) -> None:
    assert content_length([(b"Content-Length", value)]) == expected


def test_without_a_length_there_is_none() -> None:
    assert content_length([(b"a", b"1")]) is None


def test_chunks_overrule_a_length() -> None:
    both = [(b"Content-Length", b"1"), (b"Transfer-Encoding", b"chunked")]
    assert content_length(both) is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param([(b"content-length", b"3"), (b"transfer-encoding", b"chunked")], id="both"),
        pytest.param([(b"transfer-encoding", b"gzip, chunked")], id="another-coding"),
        pytest.param([(b"transfer-encoding", b"identity")], id="identity"),
        pytest.param([(b"transfer-encoding", b"chunked")] * 2, id="chunked-twice"),
        pytest.param([(b"content-length", b"3"), (b"content-length", b"4")], id="two-lengths"),
        pytest.param([(b"content-length", b"3, 3")], id="length-list"),
        pytest.param([(b"content-length", b"-3")], id="negative"),
    ],
)
def test_ambiguous_framing_is_refused(fields: Fields) -> None:
    with pytest.raises(ProxyError) as caught:
        check_framing(fields)
    assert (caught.value.status, caught.value.code) == (400, "invalid_header")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param([], id="none"),
        pytest.param([(b"Content-Length", b"3")], id="length"),
        pytest.param([(b"Transfer-Encoding", b" Chunked")], id="chunked"),
    ],
)
def test_plain_framing_passes(fields: Fields) -> None:
    check_framing(fields)
    assert end_to_end(fields) == []
