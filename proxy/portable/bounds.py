"""What a file may bring at once: far more than people have, and little enough to be held."""

from __future__ import annotations

from proxy.chat.extent import has_over

MOST_MESSAGES = 50_000
"""Messages of a conversation: it is put into the store in one piece."""

MOST_VALUES = 1_000_000
"""Values in what is read at once (see ``has_over``): a line, or a conversation."""


def check_extent(raw: bytes) -> None:
    """Raises ValueError for a text that would take too much once it is read."""
    if has_over(MOST_VALUES, raw):
        raise ValueError(f"over {MOST_VALUES} values in what is read at once")


def check_count(messages: int) -> None:
    """Raises ValueError for a conversation that is too long."""
    if messages > MOST_MESSAGES:
        raise ValueError(f"a conversation of over {MOST_MESSAGES} messages")
