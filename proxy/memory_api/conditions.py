"""Conditional requests: entity tags, and what a request says about them (RFC 9110 section 13).

The tag of a resource is made from the JSON that GET answers, so it is strong: it is the same where
the answer is the same, byte for byte.  Every GET that answers JSON has one; what changes something
compares it with the resource as it is when it is changed.
"""

from __future__ import annotations

import base64
import hashlib
import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from proxy.errors import precondition_failed
from proxy.memory_api.objects import encoded

LENGTH = 22
"""Characters of a tag: 132 bits."""

ANY = "*"
"""Stands for whatever there is."""

IF_MATCH, IF_NONE_MATCH = "if-match", "if-none-match"

_TAG = re.compile(r'(?P<weak>W/)?(?P<tag>"[\x21\x23-\x7e\x80-\xff]*")')
READING = ("GET", "HEAD")


class Conditions(msgspec.Struct, frozen=True):
    """The conditional headers of a request (RFC 9110)."""

    request: Request

    @property
    def any(self) -> bool:
        return IF_MATCH in self.request.headers or IF_NONE_MATCH in self.request.headers

    def check(self, current: object | None) -> None:
        """Raise ProxyError 412 unless the change is meant for the resource as it is.

        ``current`` is the object that GET on the same path would answer now, None where there is
        none.  To be called with what the change itself is made from, so that nothing is lost in
        between.
        """
        if not self.any:
            return
        tag = tag_of(encoded(current)) if current is not None else None
        _check_if_match(self.request, tag)
        if _names(_field(self.request, IF_NONE_MATCH), tag, weak=True):
            raise precondition_failed(IF_NONE_MATCH)


def tag_of(body: bytes) -> str:
    """The entity tag of an answer, in its quotes."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest())
    return f'"{digest[:LENGTH].decode("ascii")}"'


def conditional(request: Request, response: Response) -> Response:
    """The answer to a GET or HEAD with its tag; 304 without a body where the caller has it already.

    Other answers, streams and failures are passed on as they are.  Raises ProxyError 412.
    """
    if request.method not in READING or not _is_tagged(response):
        return response
    tag = tag_of(bytes(response.body))
    _check_if_match(request, tag)
    if _names(_field(request, IF_NONE_MATCH), tag, weak=True):
        kept = {"etag": tag, "cache-control": response.headers["cache-control"]}
        return Response(status_code=304, headers=kept)
    response.headers["etag"] = tag
    return response


def _check_if_match(request: Request, tag: str | None) -> None:
    said = _field(request, IF_MATCH)
    if said is not None and not _names(said, tag, weak=False):
        raise precondition_failed(IF_MATCH)


def _is_tagged(response: Response) -> bool:
    """Streams have no ``body``, and no tag."""
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind == "application/json" and hasattr(response, "body")


def _field(request: Request, name: str) -> str | None:
    """The value of a header, joined if it comes in several lines."""
    lines = request.headers.getlist(name)
    return ", ".join(lines) if lines else None


def _names(said: str | None, tag: str | None, *, weak: bool) -> bool:
    """Whether a list of tags has this one, None if there is no resource; ``weak``: weak tags match
    too."""
    if said is None or tag is None:
        return False
    if said.strip() == ANY:
        return True
    return any(found["tag"] == tag and (weak or not found["weak"]) for found in _TAG.finditer(said))
