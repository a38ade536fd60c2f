"""Finding the administrator's key wherever a request may hold it.  Pure."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from proxy.errors import RawHeaders

_BASIC = re.compile(rb"basic +([A-Za-z0-9+/_=-]+)", re.IGNORECASE)


class AdminKey:
    """The key; compared in constant time, and at each place of a value where a word begins.  Where
    the word goes on behind it, it is another one.

    So the work is linear in the size of the head, which is bounded, and quotes, commas, schemes
    and names before the key hide nothing.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._places = re.compile(
            rb"(?<![0-9A-Za-z])(?=.{%d}(?![0-9A-Za-z]))" % len(key), re.DOTALL
        )

    def equals(self, token: bytes) -> bool:
        return hmac.compare_digest(token, self._key)

    def is_in(self, headers: RawHeaders, target: bytes = b"") -> bool:
        """Is it in any field, in the path or in the query, percent-encoded or not?"""
        fields = (text for _, value in headers for text in _readings(value))
        return any(map(self._holds, fields)) or any(map(self._holds, _readings(target)))

    def _holds(self, text: bytes) -> bool:
        if len(text) < len(self._key):
            return False
        size = len(self._key)
        places = (found.start() for found in self._places.finditer(text))
        return any(hmac.compare_digest(text[at : at + size], self._key) for at in places)


def _readings(text: bytes) -> Iterator[bytes]:
    """A value as it came, and what it says in other letters."""
    yield text
    if b"%" in text:
        yield unquote_to_bytes(text)
    found = _BASIC.search(text)
    if found is not None:
        try:
            yield base64.b64decode(found[1] + b"==", altchars=b"-_")
        except binascii.Error:  # no base64, and so no other reading
            return
