"""The valid ids of sessions and users."""

from __future__ import annotations

import re

MAX_ID = 256

_ID = re.compile(rf"[\x21-\x7e]{{1,{MAX_ID}}}")


def is_id(text: str) -> bool:
    """Whether it has 1 to 256 visible ASCII characters and is not ``.`` or ``..``, which paths
    cannot contain."""
    return _ID.fullmatch(text) is not None and text not in (".", "..")
