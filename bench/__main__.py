"""``python -m bench [--quick] [--write]``: measures, and prints one Markdown table."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench.plan import QUICK, Plan
from bench.suite import Result, measure, steps
from bench.table import report

RESULTS = Path(__file__).with_name("RESULTS.md")
OPEN_FILES = 8192


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    plan = QUICK if options.quick else Plan()
    if options.no_redis:
        plan = replace(plan, redis=False)
    text = report(run(plan))
    print(text)
    if options.write:
        RESULTS.write_text(f"# Results\n\n{text}", encoding="utf-8")


def run(plan: Plan) -> list[Result]:
    """Measure in a temporary folder, with a progress bar on stderr."""
    _allow_open_files()
    folder = Path(tempfile.mkdtemp(prefix="memory-proxy-bench-"))
    try:
        with _progress() as progress:
            task = progress.add_task("starting", total=steps(plan))

            def step(name: str) -> None:
                progress.update(task, advance=1, description=name)

            return uvloop.run(measure(plan, folder, step))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds, a minute")
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md too")
    parser.add_argument("--no-redis", action="store_true", help="SQLite alone")
    return parser.parse_args(arguments)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
    )


def _allow_open_files() -> None:
    """Children inherit it; 512 streams need 1,024 sockets in the proxy."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


if __name__ == "__main__":
    main()
