"""Which sets of conversations can be read, and which of them a file or a folder is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.recall.datasets import (
    beam,
    locomo,
    locomo_plus,
    longmemeval,
    own,
    personamem,
    prefeval,
    realtalk,
)
from bench.recall.datasets.document import Document, read
from bench.recall.datasets.labelled import Labelled
from bench.recall.people import Collection, Person


class Dataset(NamedTuple):
    """``file`` is what its authors call it; ``knows`` tells it by its structure.

    ``people`` raises KeyError, TypeError, ValueError, … where it is not as its authors publish it.
    """

    name: str
    file: str
    knows: Callable[[Document], bool]
    people: Callable[[Document], Labelled]


DATASETS = (
    Dataset("own form", "*.jsonl, see bench/README.md", own.knows, own.people),
    Dataset("LoCoMo", "locomo10.json", locomo.knows, locomo.people),
    Dataset("LoCoMo-Plus", "locomo_plus.json", locomo_plus.knows, locomo_plus.people),
    Dataset("LongMemEval", "longmemeval_*.json", longmemeval.knows, longmemeval.people),
    Dataset("BEAM", "chats/100K", beam.knows, beam.people),
    Dataset("REALTALK", "data/Chat_*.json", realtalk.knows, realtalk.people),
    Dataset("PrefEval", "explicit_preference/*.json", prefeval.knows, prefeval.people),
    Dataset("PersonaMem", "questions_*.csv", personamem.knows, personamem.people),
)

READ = f"Read are: {'; '.join(f'{each.name} ({each.file})' for each in DATASETS)}"

SUFFIXES = frozenset({".json", ".jsonl", ".csv"})
DEEP = 4
"""Folders below the one that is given in which files are looked for."""

_BROKEN = (KeyError, TypeError, IndexError, AttributeError)
"""What an adapter meets in a file that is not as it is published; ValueErrors say it themselves."""


def load(path: Path) -> Collection:
    """All people of a file, or of a folder with files of one set.

    Raises OSError, and ValueError where it is of none that is read, or not as it is published.
    """
    found = _files(path) if path.is_dir() else list(_known(path))
    names = list(dict.fromkeys(dataset.name for dataset, _ in found))
    if len(names) != 1:
        read_are = "; ".join(f"{each.name} ({each.file})" for each in DATASETS)
        why = (
            f"files of several sets: {', '.join(names)}" if names else "not a file of conversations"
        )
        raise ValueError(f"{path}: {why}.  Read are: {read_are}")
    made = Labelled.all(_people(dataset, document) for dataset, document in found)
    for person in made.people:
        _check(path, person)
    return Collection(path.stem, made.people, made.repairs, names[0])


def _files(folder: Path) -> list[tuple[Dataset, Document]]:
    """Those that are known in the folder; if there are none, those a folder deeper, and so on."""
    for depth in range(DEEP):
        listed = sorted(path for path in folder.glob("*/" * depth + "*") if path.is_file())
        known = [one for path in listed if path.suffix in SUFFIXES for one in _known(path)]
        if known:
            return known
    return []


def _known(path: Path) -> Iterator[tuple[Dataset, Document]]:
    """What set a file is of, if it is of one."""
    try:
        document = read(path)
    except ValueError:  # no JSON, or no text at all
        return
    if document.records:
        yield from [(each, document) for each in DATASETS if each.knows(document)][:1]


def _people(dataset: Dataset, document: Document) -> Labelled:
    try:
        return dataset.people(document)
    except _BROKEN as error:
        why = f"not as {dataset.name} is published: {error!r}"
        raise ValueError(f"{document.path}: {why}") from error


def _check(path: Path, person: Person) -> None:
    known = person.texts()
    for question in person.questions:
        for alternatives in question.evidence:
            if missing := set(alternatives.split("|")) - known.keys():
                place = f"{path}: {person.id}: question {question.id}"
                raise ValueError(f"{place}: no turn {min(missing)}")
