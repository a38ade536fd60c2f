"""LangMem's memories in LangGraph's store: a list of items, or an object that has it.  Pure.

An item is ``{"namespace", "key", "value", "created_at", "updated_at"}``, as ``Item.dict()`` gives
it.  LangMem's namespaces are ``("memories", PERSON)``, and labels behind that; its values are
``{"content"}`` or ``{"kind", "content"}``, where the content is a sentence or what a schema says.
The source is langchain-ai/langgraph: libs/checkpoint/langgraph/store/base/__init__.py (Item), and
langchain-ai/langmem: src/langmem/knowledge/extraction.py and tools.py (what is put).
"""

from __future__ import annotations

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, list_in, text_in, timestamp_in
from proxy.portable.source import Note, Warnings

LISTS = ("items",)


def note_of(fields: Fields, warnings: Warnings, number: int) -> tuple[str | None, Note] | None:
    labels = [label for label in list_in(fields, "namespace") if isinstance(label, str)]
    value = fields_in(fields, "value")
    if not value or not text_in(fields, "key"):
        warnings.add(f"memory {number} says nothing and was left out")
        return None
    user = labels.pop(1) if len(labels) > 1 else None
    return user, Note(
        labels=("langmem", *labels),
        key=text_in(fields, "key"),
        value=jsontext.encode(value),
        text=_sentence(value),
        created_at=timestamp_in(fields, "created_at"),
        updated_at=timestamp_in(fields, "updated_at"),
    )


def _sentence(value: Fields) -> str | None:
    """The sentence that is all of a value; None where there is more."""
    if value.keys() - {"kind", "content"}:
        return None
    content = value.get("content")
    if isinstance(content, dict) and content.keys() == {"content"}:
        content = content["content"]
    return content if isinstance(content, str) and content.strip() else None
