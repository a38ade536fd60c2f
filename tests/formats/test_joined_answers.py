"""What telling a message apart takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from proxy.chat.message import ChatMessage, read_message
from proxy.formats.joined_answers import MAX_PARTS, candidate_messages


class Parts(Sequence[list[int]]):
    """So many, of one number each; the most that were copied at once."""

    def __init__(self, size: int) -> None:
        self.size, self.copied = size, 0

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> list[int]: ...
    @overload
    def __getitem__(self, at: slice) -> list[list[int]]: ...
    def __getitem__(self, at: int | slice) -> list[int] | list[list[int]]:
        if isinstance(at, int):
            return [at]
        found = [[n] for n in range(*at.indices(self.size))]
        self.copied = max(self.copied, len(found))
        return found

    def __iter__(self) -> Iterator[list[int]]:
        return ([n] for n in range(self.size))


def of(numbers: list[int]) -> ChatMessage:
    message = read_message(b'{"role":"assistant","content":"%d"}' % sum(numbers))
    assert message is not None
    return message


def test_each_part_is_read_once_and_with_those_behind_it() -> None:
    parts = Parts(50)
    assert len(candidate_messages(parts, of)) == 50
    assert parts.copied == MAX_PARTS
