"""The failures of upstreams, and the error that a client gets for each.

UpstreamError
  UpstreamUnreachable   refused, no such name, TLS, dropped before an answer began   502
    RequestNotReceived  a pooled connection was closed before the request arrived     502
  UpstreamTimeout       connecting, writing or reading took too long                 504
  UpstreamBroken        the answer was cut off, or is not HTTP                        502
    UpstreamTooLarge    it is larger than we read                                     502
  UpstreamSaturated     we are out of sockets; not the upstream's fault              503

The client implementations turn foreign exceptions into these, each in one place.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import ClassVar, Literal

from proxy import errors


class UpstreamError(Exception):
    """The upstream gave no complete answer.  ``kind`` is its name in logs and metrics."""

    kind: ClassVar[Literal["unreachable", "timeout", "broken", "saturated"]] = "broken"


class UpstreamUnreachable(UpstreamError):
    """No answer began.  The request may have arrived all the same, unless connecting failed."""

    kind = "unreachable"


class RequestNotReceived(UpstreamUnreachable):
    """The upstream closed the connection before anything of the request had arrived: it can be
    sent again, whatever its method."""


class UpstreamTimeout(UpstreamError):
    """The upstream sent nothing for longer than allowed."""

    kind = "timeout"


class UpstreamBroken(UpstreamError):
    """An answer began and did not end.  It must not be relayed as if it were complete."""


class UpstreamTooLarge(UpstreamBroken):
    """The answer is over the limit of what is read."""


class UpstreamSaturated(UpstreamError):
    """This process has no sockets left."""

    kind = "saturated"


CLIENT_ERRORS: dict[type[UpstreamError], Callable[[], errors.ProxyError]] = {
    UpstreamUnreachable: errors.upstream_unreachable,
    UpstreamTimeout: errors.upstream_timeout,
    UpstreamBroken: errors.upstream_broken,
    UpstreamSaturated: errors.overloaded,
    UpstreamError: errors.upstream_unreachable,
}


def error_for(failure: UpstreamError) -> errors.ProxyError:
    """The error for a client whose answer has not begun; one that has can only be cut off."""
    return next(CLIENT_ERRORS[kind]() for kind in type(failure).__mro__ if kind in CLIENT_ERRORS)


_NO_SOCKETS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL})


def as_saturated(failure: BaseException | None) -> UpstreamSaturated | None:
    """The failure as UpstreamSaturated if descriptors, buffers or ports ran out; None if not."""
    while failure is not None:
        if isinstance(failure, OSError) and failure.errno in _NO_SOCKETS:
            reason = f"{errno.errorcode[failure.errno]}: {os.strerror(failure.errno).lower()}"
            return UpstreamSaturated(f"no socket to ask with ({reason})")
        failure = failure.__cause__ or failure.__context__
    return None
