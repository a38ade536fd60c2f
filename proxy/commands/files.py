"""Files that commands read and write; "-" is standard input and output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from proxy.commands.failure import USAGE, CommandError

STANDARD = Path("-")
PIECE = 1 << 18


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write: it takes its name once all is in it, so that a half one is never there."""
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise CommandError(f"Cannot write in {path.parent}: {error.strerror}", USAGE) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


@contextmanager
def read(path: Path) -> Iterator[BinaryIO]:
    """Raises CommandError where there is no such file."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}", USAGE) from error


def size_of(path: Path) -> int | None:
    """Bytes, None where nobody knows."""
    return path.stat().st_size if path != STANDARD and path.is_file() else None


def pieces(file: BinaryIO, on_read: Callable[[int], None]) -> Iterable[bytes]:
    """The bytes of a file; ``on_read`` is told how many each time."""
    while piece := file.read(PIECE):
        yield piece
        on_read(len(piece))
