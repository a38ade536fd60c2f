"""What sessions and users may be called."""

from __future__ import annotations

import re

MAX_ID = 256

_ID = re.compile(rf"[\x21-\x7e]{{1,{MAX_ID}}}")


def is_id(text: str) -> bool:
    """1 to 256 visible ASCII characters, not ``.`` or ``..``: those are no part of a path."""
    return _ID.fullmatch(text) is not None and text not in (".", "..")
