"""The codes of errors over the memory API: their statuses, and when they come."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """An error's status, and in a sentence when it comes."""

    status: int
    when: str


CODES: dict[str, Told] = {
    "invalid_value": Told(400, "A parameter or the body is not what it should be."),
    "invalid_header": Told(400, "A header is malformed, or there are two different keys."),
    "invalid_session_id": Told(400, "This cannot be the id of a session."),
    "invalid_user_id": Told(400, "This cannot be the id of a user."),
    "unknown_profile": Told(400, "The configuration has no such profile."),
    "invalid_import": Told(400, "The file is broken; the message says where."),
    "summary_disabled": Told(400, "The session's profile has no summaries."),
    "invalid_api_key": Told(401, "No key, or one that may not see this."),
    "session_owner_mismatch": Told(403, "The session belongs to another user."),
    "profile_not_allowed": Told(403, "The profile is not open to this key."),
    "admin_key_required": Told(403, "Another tenant's memory is the administrator's to see."),
    "not_found": Told(404, "There is nothing at this path."),
    "tenant_not_found": Told(404, "Nothing is kept of this tenant."),
    "session_not_found": Told(404, "There is no such session."),
    "message_not_found": Told(404, "There is no such message in the session."),
    "exchange_not_found": Told(404, "There is no such exchange in the session."),
    "user_not_found": Told(404, "Nothing is known of this user."),
    "memory_not_found": Told(404, "There is no such memory of this user."),
    "feedback_not_found": Told(404, "Nothing has been said of this message."),
    "version_not_found": Told(404, "There is no such version."),
    "proposal_not_found": Told(404, "There is no such proposal."),
    "application_not_found": Told(404, "No profile makes instructions of this application."),
    "item_not_found": Told(404, "There is no such item."),
    "method_not_allowed": Told(405, "The path answers other methods."),
    "request_timeout": Told(408, "The body did not arrive in time."),
    "session_exists": Told(409, "The id is taken."),
    "version_conflict": Told(409, "The item has another version by now."),
    "reserved_namespace": Told(409, "What was learned is not changed here."),
    "proposal_outdated": Told(409, "It was decided on before, or made of an older text."),
    "precondition_failed": Told(412, "It is not as If-Match or If-None-Match says."),
    "request_too_large": Told(413, "The body is larger than the proxy takes."),
    "idempotency_key_reused": Told(422, "The key came with another request before."),
    "server_error": Told(500, "The proxy failed."),
    "memory_unavailable": Told(503, "The store cannot be used just now, or is busy with this."),
}

EVERYWHERE = ("invalid_value", "invalid_header", "invalid_api_key")
"""Where it matters who asks."""

OF_A_TENANT = ("admin_key_required",)
"""Where `?tenant=` says whose memory is meant."""

ALWAYS = ("server_error", "memory_unavailable")
CONDITIONAL = ("precondition_failed",)
WITH_BODY = ("request_timeout", "request_too_large")
IDEMPOTENT = ("idempotency_key_reused",)
