"""REALTALK (Lee et al. 2025): github.com/danny911kr/REALTALK, data/Chat_*.json.

Messages that people sent each other in 21 days, in a form after LoCoMo's, with its categories.
"""

from __future__ import annotations

from bench.recall.datasets.dialogue import person
from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled


def knows(document: Document) -> bool:
    chat = document.value
    return fields(chat, "name", "session_1", "qa") and fields(chat["name"], "speaker_1")


def people(document: Document) -> Labelled:
    """A person a file; the first speaker is the user."""
    chat = document.value
    return person(document.path.stem, chat, chat["name"]["speaker_1"], chat["qa"], "clean_text")
