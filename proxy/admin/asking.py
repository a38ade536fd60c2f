"""Reading what a request of the memory API asks: ids, query parameters, the body.

Knows HTTP and JSON, no store.  Raises ProxyError 400 with ``param`` naming what is wrong.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from typing import cast
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import Request

from proxy.chat.extent import MAX_VALUES, has_over
from proxy.errors import (
    ProxyError,
    invalid_session_id,
    invalid_user_id,
    request_timeout,
    request_too_large,
)
from proxy.memory.model import State
from proxy.settings import ServerSettings

MAX_LIMIT = 1000
DEFAULT_LIMIT = 100
STATES: tuple[State, ...] = ("active", "superseded")

_ID = re.compile(rb"[\x21-\x7e]{1,256}")
_DIGITS = re.compile(r"[0-9]{1,15}")


def invalid(message: str, param: str | None = None) -> ProxyError:
    """Something in the body or the query is not what it should be."""
    return ProxyError(400, "invalid_value", message, param=param)


def decoded(segment: str | bytes) -> bytes:
    """A segment of the raw path."""
    return unquote_to_bytes(segment)


def is_id(value: bytes) -> bool:
    """The rule for ids of sessions and users: visible ASCII, and no step of a path."""
    return _ID.fullmatch(value) is not None and value not in (b".", b"..")


def session_id(request: Request) -> str:
    """The session in the path."""
    value = decoded(request.path_params["session"])
    if not is_id(value):
        raise invalid_session_id("The session in the path")
    return value.decode("ascii")


def user_in_path(request: Request) -> str:
    """The user in the path."""
    value = decoded(request.path_params["user"])
    if not is_id(value):
        raise invalid_user_id("The user in the path")
    return value.decode("ascii")


def memory_id(request: Request) -> str:
    """The memory in the path; what is none is simply not found."""
    return decoded(request.path_params["memory"]).decode("utf-8", "replace")


def message_id(request: Request) -> str:
    """The message in the path; what is none is simply not found."""
    return decoded(request.path_params["message"]).decode("utf-8", "replace")


def exchange_id(request: Request) -> str:
    """The exchange in the path; what is none is simply not found."""
    return decoded(request.path_params["exchange"]).decode("utf-8", "replace")


def user_id(value: object, param: str) -> str | None:
    """A user, None where there is none.  Raises ProxyError 400 ``invalid_user_id``."""
    if value is None:
        return None
    if not isinstance(value, str) or not is_id(value.encode("utf-8", "replace")):
        raise invalid_user_id(param)
    return value


def limit(request: Request) -> int:
    """``?limit=``, 1 to 1000."""
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}.", "limit")
    return int(text)


def after_seq(request: Request) -> int:
    """``?after=`` of a list of messages: the last seq seen, 0 without one."""
    text = request.query_params.get("after", "0")
    if not _DIGITS.fullmatch(text):
        raise unknown_cursor()
    return int(text)


def unknown_cursor() -> ProxyError:
    return invalid("after must be a cursor that this list gave out as next.", "after")


def sealed(cursor: str) -> str:
    """A cursor that can be put into a URL as it is, whatever ids it holds."""
    return base64.urlsafe_b64encode(cursor.encode()).rstrip(b"=").decode("ascii")


def opened(sealed: str) -> str:
    """What was sealed.  Raises ValueError."""
    padded = sealed + "=" * (-len(sealed) % 4)
    try:
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except binascii.Error as error:
        raise ValueError("not a cursor of this list") from error


def states(request: Request) -> Sequence[State]:
    """``?state=``, a list with commas; active ones by default."""
    words = request.query_params.get("state", "active").split(",")
    if any(word not in STATES for word in words):
        raise invalid(f"state must be one or several of: {', '.join(STATES)}.", "state")
    return cast(Sequence[State], tuple(dict.fromkeys(words)))


async def body_of(request: Request, server: ServerSettings) -> bytes:
    """The body.  Raises ProxyError 413, 408, and 400 for too many values; and ClientDisconnect."""
    declared = request.headers.get("content-length", "")
    if _DIGITS.fullmatch(declared) and int(declared) > server.max_body_bytes:
        raise request_too_large(server.max_body_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(server.body_timeout):
            async for part in request.stream():
                size += len(part)
                if size > server.max_body_bytes:
                    raise request_too_large(server.max_body_bytes)
                parts.append(part)
    except TimeoutError:
        raise request_timeout() from None
    body = b"".join(parts)
    if size > MAX_VALUES and await asyncio.to_thread(has_over, MAX_VALUES, body):
        raise invalid(f"The body has over {MAX_VALUES} values.")
    return body


def text_field(fields: dict[str, bytes], name: str) -> str | None:
    """A field that is text, None where it is absent or null."""
    try:
        return msgspec.json.decode(fields.get(name, b"null"), type=str | None)
    except (ValueError, RecursionError):
        raise invalid(f"{name} must be a string.", name) from None


def whole(raw: bytes) -> int:
    """A JSON number without a fraction; 3.0 is 3, as in JSON Schema.

    Raises ValueError and RecursionError.
    """
    number = msgspec.json.decode(raw, type=int | float)
    if number != int(number):
        raise ValueError("not a whole number")
    return int(number)
