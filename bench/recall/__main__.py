"""``python -m bench.recall [DATA]``: is what a question needs in the prompt?"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import processes
from bench.recall.counting import counter
from bench.recall.datasets.table import load
from bench.recall.drive import Asked, Options, run
from bench.recall.people import Collection
from bench.recall.report import details, notes, summary, table
from bench.recall.results import Made, page, place

OWN = Path(__file__).parents[1] / "data" / "conversations.jsonl"
BUDGETS = (500, 1000, 2000)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    try:
        collection = load(options.data).part(options.people, options.questions)
    except (OSError, ValueError) as error:
        sys.exit(f"memory-proxy: {error}")
    if not collection.questions:
        sys.exit(f"memory-proxy: {options.data}: there are no questions")
    try:
        asked = measure(collection, options)
    except RuntimeError as error:
        sys.exit(f"memory-proxy: {error}")
    figures = summary(collection, _kind(options.store), asked)
    if options.details:
        options.details.write_text("".join(f"{line}\n" for line in details(asked)), "utf-8")
    told = table(asked), [*notes(figures)]
    if not options.json:
        print("\n\n".join([told[0], *told[1]]))
    if options.write:
        _keep(collection, options, *told)
    print(json.dumps(figures, ensure_ascii=False))


def _keep(
    collection: Collection, options: argparse.Namespace, table: str, notes: Sequence[str]
) -> None:
    named, made = (collection.dataset, collection.name), Made.now(_told(options))
    kept = place(*named, *_otherwise(options))
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(page(*named, table, notes, made), "utf-8")


def _otherwise(options: argparse.Namespace) -> list[str]:
    """What was not as it is by itself, for the name of a result."""
    store = _kind(options.store)
    return [*([store] if store != "sqlite" else []), *(["vectors"] if options.model else [])]


def _told(options: argparse.Namespace) -> str:
    """What was chosen, as arguments; no place on this machine is in it."""
    budgets = ",".join(map(str, options.budget))
    told = f"--budget {budgets} --store {_kind(options.store)} --client {options.client}"
    chosen = ((name, getattr(options, name)) for name in ("model", "settle", "people", "questions"))
    return " ".join([told, *(f"--{name} {value}" for name, value in chosen if value)])


def measure(collection: Collection, given: argparse.Namespace) -> list[Asked]:
    """All questions at all budgets, with progress bars on stderr."""
    with _folder() as folder, _store(given.store, folder) as url, _progress() as progress:
        replayed = progress.add_task("replaying", total=collection.exchanges)
        asked = progress.add_task("asking", total=collection.questions * len(given.budget))
        options = Options(url, given.budget, given.client, counter(), given.model, given.settle)
        return asyncio.run(
            run(
                collection,
                options,
                folder,
                lambda: progress.advance(replayed),
                lambda: progress.advance(asked),
            )
        )


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memory-proxy-recall-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _store(store: str, folder: Path) -> Iterator[str]:
    if store == "redis":
        with processes.redis(folder) as url:
            yield url
    else:
        yield f"sqlite:///{folder}/memory.db" if store == "sqlite" else store


def _kind(store: str) -> str:
    return store.partition(":")[0]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    add = parser.add_argument
    add(
        "data",
        type=Path,
        nargs="?",
        default=OWN,
        help="a file or folder of a set: see README.md",
    )
    add("--budget", type=_budgets, default=BUDGETS, help="tokens, as in 500,1000,2000")
    add("--store", default="sqlite", help="sqlite, redis (both made for this run), or a store URL")
    add("--client", choices=("last", "full"), default="last", help="sends its last message, or all")
    add("--model", default="", help="vectors too: memory.recall.embeddings.model")
    add("--settle", type=float, default=0.0, help="seconds to wait for vectors before asking")
    add("--people", type=int, default=0, help="so many people, evenly spread")
    add("--questions", type=int, default=0, help="so many questions of each, evenly spread")
    add("--details", type=Path, help="a file for one line of JSON a question and budget")
    add("--json", action="store_true", help="the line of JSON alone, without the table")
    add("--write", action="store_true", help="keeps the table in bench/results")
    return parser.parse_args(arguments)


def _budgets(text: str) -> tuple[int, ...]:
    budgets = tuple(sorted({int(part) for part in text.split(",")}))
    if budgets[0] < 1:
        raise argparse.ArgumentTypeError("budgets are at least 1")
    return budgets


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
    )


if __name__ == "__main__":
    main()
