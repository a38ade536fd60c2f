"""``python -m bench [WHAT] [--quick] [--write]``: measures, and prints Markdown."""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench import capacity, processes
from bench.attack import soak
from bench.attack import suite as attack
from bench.attack.attacks import attacks
from bench.attack.table import lines
from bench.attack.table import report as attack_report
from bench.cache import suite as cache
from bench.cache.table import report as cache_report
from bench.cost import plan as cost
from bench.cost.suite import Costs
from bench.cost.suite import measure as measure_recall
from bench.cost.table import report as cost_report
from bench.plan import QUICK, Plan
from bench.suite import Measured, measure, steps
from bench.table import report
from bench.writing import plan as writing
from bench.writing.suite import Results
from bench.writing.suite import measure as measure_writing
from bench.writing.table import report as writing_report

RESULTS = {
    "proxy": Path(__file__).with_name("RESULTS.md"),
    "capacity": Path(__file__).with_name("RESULTS-capacity.md"),
    "recall": Path(__file__).with_name("RESULTS-recall.md"),
    "writing": Path(__file__).with_name("RESULTS-writing.md"),
    "cache": Path(__file__).with_name("RESULTS-cache.md"),
    "attacks": Path(__file__).with_name("RESULTS-attacks.md"),
    "soak": Path(__file__).with_name("RESULTS-soak.md"),
}
OPEN_FILES = 8192
LOGGED = 20
"""Lines of a log that are shown."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    made = {
        "proxy": _proxy,
        "capacity": _capacity,
        "recall": _recall,
        "writing": _writing,
        "cache": _cache,
        "attacks": _attacks,
        "soak": _soak,
    }
    text = made[options.what](options)
    print(text)
    if options.write:
        RESULTS[options.what].write_text(f"# Results\n\n{text}", encoding="utf-8")


def _proxy(options: argparse.Namespace) -> str:
    plan = QUICK if options.quick else Plan()
    return report(run(replace(plan, redis=not options.no_redis)))


def _capacity(options: argparse.Namespace) -> str:
    plan = capacity.QUICK if options.quick else capacity.Plan()
    return capacity.report(run_capacity(replace(plan, redis=not options.no_redis)))


def _recall(options: argparse.Namespace) -> str:
    plan = cost.QUICK if options.quick else cost.Plan()
    plan = replace(plan, redis=not options.no_redis)
    return cost_report(plan, run_recall(plan))


def _writing(options: argparse.Namespace) -> str:
    plan = writing.QUICK if options.quick else writing.Plan()
    plan = replace(plan, redis=not options.no_redis)
    return writing_report(plan, run_writing(plan))


def _cache(options: argparse.Namespace) -> str:
    return cache_report(run_cache(cache.QUICK if options.quick else cache.Plan()))


def _attacks(options: argparse.Namespace) -> str:
    chosen = [attack for attack in attacks() if options.only in attack.name]
    stores = ("sqlite",) if options.no_redis or options.quick else ("sqlite", "redis")
    _allow_open_files()
    with _folder() as folder, _progress() as progress:
        task = progress.add_task("starting", total=len(chosen) * len(stores))

        def step(name: str) -> None:
            progress.update(task, advance=1, description=name)

        results = []
        for result in attack.run(chosen, stores, folder, step):
            results.append(result)
            progress.console.print(*lines(result), sep="\n", soft_wrap=True)
        return attack_report(results)


def _soak(options: argparse.Namespace) -> str:
    seconds = 120.0 if options.quick else 1200.0
    with _folder() as folder, _progress() as progress:
        task = progress.add_task("soak", total=seconds)

        def step(now: float) -> None:
            progress.update(task, completed=now)

        return soak.report(soak.run("sqlite", folder, seconds, step))


def run(plan: Plan) -> Measured:
    """Measure in a temporary folder, with a progress bar on stderr."""
    _allow_open_files()
    with _folder() as folder, _progress() as progress:
        task = progress.add_task("starting", total=steps(plan))

        def step(name: str) -> None:
            progress.update(task, advance=1, description=name)

        return uvloop.run(measure(plan, folder, step))


def run_capacity(plan: capacity.Plan) -> capacity.Capacity:
    """The same for how much one worker carries."""
    _allow_open_files()
    with _folder() as folder, _progress() as progress:
        task = progress.add_task("starting", total=len(plan.stores) * len(plan.people) + 1)

        def step(name: str) -> None:
            progress.update(task, advance=1, description=name)

        return uvloop.run(capacity.measure(plan, folder, step))


def run_recall(plan: cost.Plan) -> list[Costs]:
    """The same for what recall costs."""
    with _folder() as folder, _progress() as progress:
        return uvloop.run(measure_recall(plan, folder, progress))


def run_writing(plan: writing.Plan) -> list[Results]:
    """The same for what it costs that a model writes memory."""
    with _folder() as folder, _progress() as progress:
        return uvloop.run(measure_writing(plan, folder, progress))


def run_cache(plan: cache.Plan) -> list[cache.Result]:
    """The same for what upstreams cache."""
    with _folder() as folder, _progress() as progress:
        task = progress.add_task("turns", total=cache.steps(plan))
        return uvloop.run(cache.measure(plan, folder, lambda: progress.advance(task)))


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder.  Where something fails in it, what the processes logged last is shown."""
    folder = Path(tempfile.mkdtemp(prefix="memory-proxy-bench-"))
    try:
        yield folder
    except Exception as error:
        for line in processes.logged(folder)[-LOGGED:]:
            error.add_note(line)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    what = parser.add_argument("what", nargs="?", choices=tuple(RESULTS), default="proxy")
    what.help = "what a request costs (default), how much a worker carries, and so on"
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds, a minute")
    parser.add_argument("--write", action="store_true", help="keep the tables in a file too")
    parser.add_argument("--no-redis", action="store_true", help="SQLite alone")
    parser.add_argument("--only", default="", help="attacks with this in their name")
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
