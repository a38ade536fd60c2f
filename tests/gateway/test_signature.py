"""Signed session and user ids."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from proxy.errors import ProxyError
from proxy.gateway.identity import MAX_AGE_SECONDS, check_signature, sign

SECRET = b"a long random string"
NOW = 1_800_000_000


def header(time: int = NOW, session: str = "s", user: str = "kai", secret: bytes = SECRET) -> bytes:
    return f"t={time},v1={sign(secret, time, session, user)}".encode()


def test_it_is_the_hmac_over_time_session_and_user_line_by_line() -> None:
    said = f"{NOW}\ns\nkai".encode()
    assert sign(SECRET, NOW, "s", "kai") == hmac.new(SECRET, said, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("age", [0, MAX_AGE_SECONDS, -MAX_AGE_SECONDS])
def test_what_was_signed_counts_for_five_minutes(age: int) -> None:
    check_signature(header(NOW - age), SECRET, "s", "kai", NOW)


def test_upper_case_and_spaces_are_fine() -> None:
    time, _, value = header().decode().partition(",v1=")
    check_signature(f" {time} , v1={value.upper()} ".encode(), SECRET, "s", "kai", NOW)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"t=1", id="no signature"),
        pytest.param(f"v1={sign(SECRET, NOW, 's', 'kai')}".encode(), id="no time"),
        pytest.param(header(NOW - MAX_AGE_SECONDS - 1), id="too old"),
        pytest.param(header(NOW + MAX_AGE_SECONDS + 1), id="from the future"),
        pytest.param(header(session="other"), id="another session"),
        pytest.param(header(user="eve"), id="another user"),
        pytest.param(header(session="s\nkai", user=""), id="a line break moved"),
        pytest.param(header(secret=b"guessed"), id="another secret"),
        pytest.param(header().replace(b"v1=", b"v2="), id="another version"),
    ],
)
def test_anything_else_is_refused(wrong: bytes | None) -> None:
    with pytest.raises(ProxyError) as refusal:
        check_signature(wrong, SECRET, "s", "kai", NOW)
    assert (refusal.value.status, refusal.value.code) == (403, "invalid_signature")
