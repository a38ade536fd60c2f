"""What schemathesis is told beyond the document: which ids it cannot send.

It takes what looks like an escape in an id for one: ``a%ba`` would go out as another id.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import schemathesis

MADE_BY_BODIES = ("id", "user")
"""Fields whose values stand in paths later on."""


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    named = body if isinstance(body, dict) else {}
    return all(unquote(str(named.get(name))) == str(named.get(name)) for name in MADE_BY_BODIES)


@schemathesis.hook
def filter_path_parameters(context: Any, path_parameters: Any) -> bool:
    """They may be escaped already: then half a character is not."""
    return not any("\ufffd" in unquote(str(value)) for value in (path_parameters or {}).values())
