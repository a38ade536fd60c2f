"""Progress of long work, on a terminal and nowhere else."""

from __future__ import annotations

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


def _progress(amount: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
