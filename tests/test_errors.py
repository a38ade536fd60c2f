"""The table of the proxy's own errors."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from proxy import errors
from proxy.errors import ProxyError

TABLE: list[tuple[Callable[[], ProxyError], int, str]] = [
    (lambda: errors.invalid_header("Send one key.", "Authorization"), 400, "invalid_header"),
    (errors.malformed_request, 400, "invalid_header"),
    (lambda: errors.headers_too_large(65536), 431, "invalid_header"),
    (errors.invalid_session_id, 400, "invalid_session_id"),
    (errors.invalid_user_id, 400, "invalid_user_id"),
    (errors.unknown_profile, 400, "unknown_profile"),
    (errors.invalid_api_key, 401, "invalid_api_key"),
    (errors.session_owner_mismatch, 403, "session_owner_mismatch"),
    (errors.user_required, 403, "user_required"),
    (errors.path_not_allowed, 403, "path_not_allowed"),
    (errors.profile_not_allowed, 403, "profile_not_allowed"),
    (errors.invalid_signature, 403, "invalid_signature"),
    (errors.not_found, 404, "not_found"),
    (errors.missing_v1, 404, "not_found"),
    (errors.session_not_found, 404, "session_not_found"),
    (errors.message_not_found, 404, "message_not_found"),
    (lambda: errors.response_not_found("resp_1" * 99), 404, "response_not_found"),
    (lambda: errors.conversation_not_found("conv_1"), 404, "conversation_not_found"),
    (lambda: errors.item_not_found("msg_1"), 404, "item_not_found"),
    (lambda: errors.invalid_value("limit must be a number.", "limit"), 400, "invalid_value"),
    (lambda: errors.not_in_background("Nothing is."), 400, "not_in_background"),
    (lambda: errors.method_not_allowed("GET, DELETE"), 405, "method_not_allowed"),
    (errors.request_timeout, 408, "request_timeout"),
    (lambda: errors.precondition_failed("if-match"), 412, "precondition_failed"),
    (lambda: errors.request_too_large(1024), 413, "request_too_large"),
    (errors.server_error, 500, "server_error"),
    (errors.upstream_unreachable, 502, "upstream_unreachable"),
    (errors.upstream_broken, 502, "upstream_unreachable"),
    (errors.overloaded, 503, "overloaded"),
    (errors.memory_unavailable, 503, "memory_unavailable"),
    (errors.memory_busy, 503, "memory_unavailable"),
    (errors.upstream_timeout, 504, "upstream_timeout"),
]
ROWS = [pytest.param(*row, id=f"{row[1]}-{row[0]().message[:24]}") for row in TABLE]


@pytest.mark.parametrize(("make", "status", "code"), ROWS)
def test_every_error_has_openai_s_shape(
    make: Callable[[], ProxyError], status: int, code: str
) -> None:
    error = make()
    body = json.loads(error.body)
    assert error.status == status
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["code"] == code
    assert body["error"]["type"] == ("server_error" if status >= 500 else "invalid_request_error")
    assert body["error"]["message"].endswith(".")


@pytest.mark.parametrize(("make", "status", "code"), ROWS)
def test_headers_describe_the_body(make: Callable[[], ProxyError], status: int, code: str) -> None:
    headers = dict(make().raw_headers)
    assert headers[b"content-type"] == b"application/json"
    assert int(headers[b"content-length"]) == len(make().body)


@pytest.mark.parametrize("make", [errors.overloaded, errors.memory_unavailable])
def test_unavailable_says_when_to_come_back(make: Callable[[], ProxyError]) -> None:
    assert int(dict(make().raw_headers)[b"retry-after"]) >= 1


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(errors.request_timeout, id="408"),
        pytest.param(lambda: errors.request_too_large(1), id="413"),
        pytest.param(errors.malformed_request, id="400"),
    ],
)
def test_an_unread_body_costs_the_connection(make: Callable[[], ProxyError]) -> None:
    assert (b"connection", b"close") in make().raw_headers


def test_the_place_of_the_mistake_is_named() -> None:
    assert json.loads(errors.invalid_session_id().body)["error"]["param"] == "X-Session-Id"
    assert json.loads(errors.invalid_user_id("Helicone-User-Id").body)["error"]["param"] == (
        "Helicone-User-Id"
    )


FORBIDDEN = [make for make, status, _ in TABLE if status == 403]


@pytest.mark.parametrize("make", FORBIDDEN, ids=lambda make: make().code)
def test_what_is_forbidden_says_what_to_do_instead(make: Callable[[], ProxyError]) -> None:
    told, _, instead = make().message.partition(". ")
    assert told and instead


def test_a_chat_request_without_v1_is_told_where_to_go() -> None:
    assert "/v1" in errors.missing_v1().message


def test_what_repeats_half_a_surrogate_pair_can_be_sent() -> None:
    error = ProxyError(400, "invalid_value", "half \ud83d.", param="\ud83d")
    told = json.loads(error.body)["error"]
    assert (told["message"], told["param"]) == ("half \\ud83d.", "\\ud83d")
    assert dict(error.raw_headers)[b"content-length"] == str(len(error.body)).encode()


def test_an_error_survives_raising_and_chaining() -> None:
    with pytest.raises(ProxyError) as caught:
        try:
            raise ValueError("inside")
        except ValueError as cause:
            raise errors.server_error() from cause
    assert "inside" not in caught.value.body.decode()
    assert repr(caught.value).startswith("<ProxyError 500 server_error")
