"""Conditional requests: entity tags, If-Match and If-None-Match (RFC 9110 section 13).

The tag of a resource is a hash of the JSON that GET answers, so it is a strong one.  Every GET that
answers JSON has it; a change compares it with the resource at the moment of the change.
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
"""Matches any resource that exists."""

IF_MATCH, IF_NONE_MATCH = "if-match", "if-none-match"

_TAG = re.compile(r'(?P<weak>W/)?(?P<tag>"[\x21\x23-\x7e\x80-\xff]*")')
READ_METHODS = ("GET", "HEAD")


class Conditions(msgspec.Struct, frozen=True):
    request: Request

    @property
    def has_any(self) -> bool:
        return IF_MATCH in self.request.headers or IF_NONE_MATCH in self.request.headers

    def check(self, current: object | None) -> None:
        """Raise ProxyError 412 unless the conditions hold for the current resource.

        ``current`` is the object that GET on the same path would answer now, None if there is none.
        The change must be made to this same version, so that no update in between is lost.
        """
        if not self.has_any:
            return
        tag = tag_of(encoded(current)) if current is not None else None
        _check_if_match(self.request, tag)
        if _lists_tag(_field(self.request, IF_NONE_MATCH), tag, weak=True):
            raise precondition_failed(IF_NONE_MATCH)


def tag_of(body: bytes) -> str:
    """The entity tag of an answer, in its quotes."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest())
    return f'"{digest[:LENGTH].decode("ascii")}"'


def conditional(request: Request, response: Response) -> Response:
    """Add the tag to the answer of a GET or HEAD; 304 without a body if the caller has it already.

    Other answers, streams and errors are returned unchanged.  Raises ProxyError 412.
    """
    if request.method not in READ_METHODS or not _is_tagged(response):
        return response
    tag = tag_of(bytes(response.body))
    _check_if_match(request, tag)
    if _lists_tag(_field(request, IF_NONE_MATCH), tag, weak=True):
        headers = {"etag": tag, "cache-control": response.headers["cache-control"]}
        return Response(status_code=304, headers=headers)
    response.headers["etag"] = tag
    return response


def _check_if_match(request: Request, tag: str | None) -> None:
    value = _field(request, IF_MATCH)
    if value is not None and not _lists_tag(value, tag, weak=False):
        raise precondition_failed(IF_MATCH)


def _is_tagged(response: Response) -> bool:
    """Streams have no ``body``, and no tag."""
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind == "application/json" and hasattr(response, "body")


def _field(request: Request, name: str) -> str | None:
    """The value of a header, joined if it comes in several lines."""
    lines = request.headers.getlist(name)
    return ", ".join(lines) if lines else None


def _lists_tag(value: str | None, tag: str | None, *, weak: bool) -> bool:
    """Whether a list of tags has this one, None if there is no resource; ``weak``: weak tags match
    too."""
    if value is None or tag is None:
        return False
    if value.strip() == ANY:
        return True
    return any(
        match["tag"] == tag and (weak or not match["weak"]) for match in _TAG.finditer(value)
    )
