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
from proxy.commands.output import standard_output

STANDARD = Path("-")
PIECE = 1 << 18


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to write: it takes its name once all is in it, so that a half one is never there.

    What is there and is no regular file, a pipe or a device, is written as it is.
    """
    if path == STANDARD:
        yield standard_output().buffer
        standard_output().buffer.flush()
        return
    whole = _is_regular(path)
    with _beside(Path(os.path.realpath(path))) if whole else _as_it_is(path) as file:
        yield file


def _is_regular(path: Path) -> bool:
    """So is what is not there yet.  Raises CommandError for what cannot be written."""
    try:
        if path.is_dir():
            raise CommandError(f"Cannot write {path}: it is a directory", USAGE)
        return path.is_file() or not path.exists()
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", USAGE) from error


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
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
def _as_it_is(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("wb")
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", USAGE) from error
    with file:
        yield file


@contextmanager
def read(path: Path) -> Iterator[BinaryIO]:
    """Raises CommandError where there is no such file."""
    if path == STANDARD:
        if sys.stdin is None:
            raise CommandError("Standard input is closed.", USAGE)
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
