"""A value that is a file of its own, as the secrets of containers are."""

from __future__ import annotations

MAX_CHARACTERS = 1024 * 1024
"""More than thousands of clients take, and little enough for a file that never ends."""


def content_of(path: str) -> str:
    """What the file holds, without white space around it.  Raises ValueError, which names the file
    and nothing that is in it."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}") from error
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{path}: holds more than {MAX_CHARACTERS:,} characters")
    if not text.strip():
        raise ValueError(f"{path}: is empty")
    return text.strip()
