"""Export and import on the command line: files ("-" is standard input and output), progress,
results.

Progress of long work is on a terminal and nowhere else.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from proxy.commands.command import CommandContext
from proxy.commands.failure import USAGE, CommandError
from proxy.commands.output import Object, count_of, line, standard_output
from proxy.memory.archive import OnProgress

STANDARD = Path("-")
Target = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The file; - is standard output.")
]
PIECE = 1 << 18


@contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name once it is complete, so that it is never partial.

    An existing pipe or device is written directly.
    """
    if path == STANDARD:
        yield standard_output().buffer
        standard_output().buffer.flush()
        return
    whole = _is_regular(path)
    with _temporary_file(Path(os.path.realpath(path))) if whole else _existing_device(path) as file:
        yield file


def _is_regular(path: Path) -> bool:
    """Whether it is a regular file or does not exist.  Raises CommandError if it cannot be
    written."""
    try:
        if path.is_dir():
            raise CommandError(f"Cannot write {path}: it is a directory", USAGE)
        return path.is_file() or not path.exists()
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", USAGE) from error


def temporary_beside(path: Path) -> tuple[int, str]:
    """Descriptor and name of a hidden temporary file beside this one.  Raises CommandError."""
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise CommandError(f"Cannot write in {path.parent}: {error.strerror}", USAGE) from error


@contextmanager
def _temporary_file(path: Path) -> Iterator[BinaryIO]:
    descriptor, beside = temporary_beside(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


@contextmanager
def _existing_device(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("wb")
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}", USAGE) from error
    with file:
        yield file


@contextmanager
def input_file(path: Path) -> Iterator[BinaryIO]:
    """A file to read.  Raises CommandError if it does not exist."""
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
    """The size in bytes, None if unknown."""
    return path.stat().st_size if path != STANDARD and path.is_file() else None


def pieces(file: BinaryIO, on_read: Callable[[int], None]) -> Iterable[bytes]:
    """The bytes of a file in pieces; ``on_read`` is called with the size of each."""
    while piece := file.read(PIECE):
        yield piece
        on_read(len(piece))


def counting() -> Progress:
    """A progress bar that counts things."""
    return _progress(MofNCompleteColumn())


def progress_callback(progress: Progress, things: str) -> OnProgress:
    """Add a bar; returns a function that updates it with the number done and the total."""
    task = progress.add_task(things, total=None)

    def tell(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)

    return tell


def loading() -> Progress:
    """A progress bar of bytes."""
    return _progress(DownloadColumn())


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a bar without a total while the block runs."""
    with _progress(TextColumn("")) as progress:
        progress.add_task(what, total=None)
        yield


def _progress(amount: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def export(
    context: CommandContext, path: str, output: Path, sessions: int | None, user: str | None
) -> None:
    """Write an export; the bar counts its sessions, of ``sessions`` if that is known."""
    params = [("user", user)] if user is not None else []
    with output_file(output) as file, counting() as progress:
        task = progress.add_task("sessions", total=sessions)
        with context.api.stream("GET", path, params) as response:
            for row in lines(response.iter_bytes()):
                file.write(row)
                if row.startswith(SESSION_ENDS):
                    progress.advance(task)


SESSION_ENDS = b'{"kind":"session_end"'
"""The beginning of the line that ends a session in an export."""


def lines(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The lines of these pieces, with their line breaks."""
    rest: list[bytes] = []
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for row in whole:
            yield b"".join((*rest, row, b"\n"))
            rest.clear()
        rest.append(last)
    if any(rest):
        yield b"".join(rest)


def import_file(context: CommandContext, file: Path, params: Sequence[tuple[str, str]]) -> None:
    """Import a file, and print the result."""
    with input_file(file) as opened, loading() as progress:
        task = progress.add_task("sent", total=size_of(file))
        body = pieces(opened, lambda size: progress.advance(task, size))
        found = context.api.ask("POST", "/import", params, body, long=True)
    if context.out.as_json:
        context.out.print_json(found)
    else:
        _print_counts(context, found)
    if found["warnings"] and not _has_imports(found):
        sentence = f"There is nothing to import in {file}, read as {found['format']}"
        raise CommandError(f"{sentence}: --format names another format.")


def _has_imports(found: Object) -> bool:
    """Whether anything was imported or existed already."""
    return bool(found["sessions"] or found["memories"] or any(found["skipped"].values()))


def _print_counts(context: CommandContext, found: Object) -> None:
    sessions, messages, memories = (
        count_of(found[things], things) for things in ("sessions", "messages", "memories")
    )
    done = "would be imported" if found.get("dry_run") else "imported"
    context.out.note(f"{sessions} with {messages} and {memories} {done} ({found['format']})")
    skipped = [count_of(count, things) for things, count in found["skipped"].items() if count]
    if skipped:
        context.out.note(f"skipped, as they are there already: {', '.join(skipped)}")
    for warning in found["warnings"]:
        context.out.note(f"note: {line(str(warning))}")
