"""The errors of the memory API, each declared once, with their descriptions for the document.

Those that the proxy answers elsewhere too are made in ``proxy.errors``.
"""

from __future__ import annotations

import msgspec

from proxy import errors
from proxy.errors import ProxyError
from proxy.learning.facts.fact import MAX_GIVEN


class Failure(msgspec.Struct, frozen=True):
    """An error's status and code, and a sentence on when it occurs.

    Call it to make the exception.
    """

    status: int
    code: str
    when: str
    message: str = ""  # ``when``, if empty
    param: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __call__(self, message: str = "", param: str | None = None) -> ProxyError:
        """The exception; ``message`` and ``param`` override the default ones."""
        text = message or self.message or self.when
        param_named = self.param if param is None else param
        return ProxyError(self.status, self.code, text, param=param_named, headers=self.headers)


def _shared(error: ProxyError, when: str) -> Failure:
    """The declaration of an error of ``proxy.errors``, of which ``error`` is an example."""
    return Failure(error.status, error.code, when, error.message, error.param, tuple(error.headers))


invalid_value = Failure(400, "invalid_value", "A parameter or the body is not what it should be.")
invalid_header = _shared(
    errors.invalid_header(""), "A header is malformed, or there are two different keys."
)
invalid_session_id = _shared(errors.invalid_session_id(), "This cannot be the id of a session.")
invalid_user_id = _shared(errors.invalid_user_id(), "This cannot be the id of a user.")
unknown_profile = Failure(
    400,
    "unknown_profile",
    "The configuration has no such profile.",
    "There is no such profile. Use one of the proxy's [profiles.NAME], or none.",
    "profile",
)
invalid_import = _shared(errors.invalid_import(""), "The file is broken; the message says where.")
summary_disabled = Failure(
    400,
    "summary_disabled",
    "The session's profile has no summaries.",
    "The profile of this session has no summaries. Enable them in [memory.summary].",
)
invalid_api_key = _shared(errors.invalid_api_key(), "No key, or one that may not see this.")
session_owner_mismatch = Failure(
    403,
    "session_owner_mismatch",
    "The session belongs to another user.",
    "This session belongs to another user. Name the user it began with, or none.",
    "user",
)
profile_not_allowed = _shared(errors.profile_not_allowed(), "The profile is not open to this key.")
admin_key_required = _shared(
    errors.admin_key_required(), "Another tenant's memory is the administrator's to see."
)
not_found = _shared(errors.not_found(), "There is nothing at this path.")
tenant_not_found = _shared(errors.tenant_not_found(""), "Nothing is kept of this tenant.")
session_not_found = _shared(errors.session_not_found(), "There is no such session.")
message_not_found = _shared(errors.message_not_found(), "There is no such message in the session.")
exchange_not_found = Failure(
    404,
    "exchange_not_found",
    "There is no such exchange in the session.",
    "There is no such exchange in this session.",
)
user_not_found = Failure(404, "user_not_found", "Nothing is known of this user.")
memory_not_found = Failure(404, "memory_not_found", "There is no such memory of this user.")
feedback_not_found = Failure(404, "feedback_not_found", "Nothing has been said of this message.")
version_not_found = Failure(404, "version_not_found", "There is no such version.", param="version")
proposal_not_found = Failure(404, "proposal_not_found", "There is no such proposal.")
application_not_found = Failure(
    404,
    "application_not_found",
    "No profile makes instructions of this application.",
    "No profile with [memory.instructions] enabled has this application.",
    "application",
)
item_not_found = Failure(404, "item_not_found", "There is no such item.")
idempotency_key_spent = Failure(
    410,
    "idempotency_key_spent",
    "What the key was to create has been deleted since.",
    "What this key was to create has been deleted since. Use a new key to create it again.",
    "Idempotency-Key",
)
method_not_allowed = _shared(errors.method_not_allowed(""), "The path answers other methods.")
request_timeout = _shared(errors.request_timeout(), "The body did not arrive in time.")
session_exists = Failure(
    409,
    "session_exists",
    "The id is taken.",
    "There is a session with this id already. Choose another, or delete that session.",
    "id",
)
version_conflict = Failure(
    409,
    "version_conflict",
    "The item has another version by now.",
    "The item has another version by now. Read it, and put it again.",
    "if_version",
)
reserved_namespace = Failure(
    409,
    "reserved_namespace",
    "A label of the namespace is one of the proxy's own.",
    param="namespace",
)
proposal_outdated = Failure(
    409,
    "proposal_outdated",
    "It was decided on before, or made of an older text.",
    "The proposal was decided on before, or the instructions have changed since it was made.",
)
precondition_failed = _shared(
    errors.precondition_failed(""), "It is not as If-Match or If-None-Match says."
)
request_too_large = _shared(errors.request_too_large(0), "The body is larger than the proxy takes.")
session_too_large = Failure(
    413,
    "session_too_large",
    "The session has too much text to be copied at once.",
    "The session has more than 256 MB of text. Export it, and import it under another id, with"
    " server.max_import_bytes raised.",
)
idempotency_key_reused = Failure(
    422,
    "idempotency_key_reused",
    "The key came with another request before.",
    "This key came with another request before. Use a new key for each new request.",
    "Idempotency-Key",
)
too_many_memories = Failure(
    422,
    "too_many_memories",
    "The person has as many memories as may be added or saved.",
    f"This person has as many memories as may be added or saved, {MAX_GIVEN:,}. Delete some first.",
)
server_error = _shared(errors.server_error(), "The proxy failed.")
memory_unavailable = _shared(
    errors.memory_unavailable(), "The store cannot be used just now, or is busy with this."
)

CODES: dict[str, Failure] = {
    each.code: each for each in [*vars().values()] if isinstance(each, Failure)
}
"""All errors, by code."""

EVERYWHERE = (invalid_value, invalid_header, invalid_api_key)
"""Errors of all operations that need a key."""

OF_A_TENANT = (admin_key_required,)
"""Errors of operations with ``?tenant=``."""

ALWAYS = (server_error, memory_unavailable)
CONDITIONAL = (precondition_failed,)
WITH_BODY = (request_timeout, request_too_large)
IDEMPOTENT = (idempotency_key_spent, idempotency_key_reused)
