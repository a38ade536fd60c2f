"""The proxy's own errors in the shape of the Messages API.

https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.errors import ProxyError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_body(error: ProxyError) -> bytes:
    """``{"type": "error", "error": {"type", "message", "code"}}`` as JSON; ``code`` is ours."""
    default = "api_error" if error.status >= 500 else "invalid_request_error"
    kind = _TYPES.get(error.status, default)
    fields = {"type": kind, "message": error.message, "code": error.code}
    return jsontext.encode({"type": "error", "error": fields})
