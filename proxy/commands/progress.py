"""Progress of long work, on a terminal and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


def counting() -> Progress:
    """Of things that are counted."""
    return _progress(MofNCompleteColumn())


def loading() -> Progress:
    """Of bytes."""
    return _progress(DownloadColumn())


@contextmanager
def working(what: str) -> Iterator[None]:
    """While something takes as long as it takes."""
    with _progress(TextColumn("")) as progress:
        progress.add_task(what, total=None)
        yield


def _progress(amount: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
