"""LoCoMo (Maharana et al. 2024): github.com/snap-research/locomo, data/locomo10.json.

Its licence is CC BY-NC 4.0; nothing of it is here.
"""

from __future__ import annotations

from bench.recall.datasets.dialogue import person
from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled


def knows(document: Document) -> bool:
    return all(fields(sample, "conversation", "qa") for sample in document.records)


def people(document: Document) -> Labelled:
    """A person a sample; speaker A is the user."""
    return Labelled.all(
        person(
            str(sample.get("sample_id") or f"{document.path.stem}-{number}"),
            sample["conversation"],
            sample["conversation"]["speaker_a"],
            sample["qa"],
            "text",
        )
        for number, sample in enumerate(document.records)
    )
