"""Explains to operators why a server could not be reached.  Pure.

HTTP clients wrap the system's errors in their own; the innermost one is explained.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

_EXPIRED, _NOT_YET = 10, 9
_OTHER_NAME = frozenset({62, 64})
_UNTRUSTED = frozenset({18, 19, 20, 21})
"""OpenSSL's X509_V_ERR_…"""

_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER", "PACKET_LENGTH", "UNKNOWN_PROTOCOL")
_MAX_LENGTH = 200
_URL = re.compile(r"(?<=://)[^\s'\"]+")


def explain_failure(error: BaseException) -> str:
    """One clause, without line breaks and without URLs, which may hold a password or a key."""
    found = next(filter(None, map(_explain, _chain(error))), None)
    return (
        found or _URL.sub("…", " ".join(str(error).split()))[:_MAX_LENGTH] or type(error).__name__
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, the innermost first."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.append(each)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        waiting += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
    return reversed(seen)


def _explain(error: BaseException) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error)
    if isinstance(error, ssl.SSLError):
        return _tls(error)
    if isinstance(error, socket.gaierror):
        return _name(error)
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused)"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the connection was closed before an answer"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, TimeoutError):
        return error.strerror.lower()
    return None


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "its certificate has expired"
    if code == _NOT_YET:
        return "its certificate is not valid yet: look at this machine's clock"
    if code in _OTHER_NAME:
        return f"its certificate is for another name ({error.verify_message})"
    if code in _UNTRUSTED:
        return (
            f"its certificate is not trusted ({error.verify_message}):"
            " name the authority's file as upstream.ca_file"
        )
    return f"its certificate is refused ({error.verify_message})"


def _tls(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if reason.startswith(_NO_TLS):
        return "what answers there speaks no TLS: perhaps it is http://"
    return f"TLS failed ({reason.lower().replace('_', ' ')})"


def _name(error: socket.gaierror) -> str:
    if error.errno == socket.EAI_AGAIN:
        return "its name cannot be looked up just now (DNS)"
    return "there is no host of this name"
