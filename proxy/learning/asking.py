"""Asking a model for something learned, and finding the JSON in what it answers.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import islice

from proxy.background.completion import Assignment
from proxy.settings.written import WriterSettings

MOST_TRIES = 50
"""Places in an answer where its JSON may begin."""

_BEGINS = re.compile(r"[{\[]")


def assignment(
    tenant: str,
    feature: str,
    writer: WriterSettings,
    text: str = "",
    model: str | None = None,
    schema: Mapping[str, object] | None = None,
) -> Assignment:
    """What is asked under a feature's settings; ``model`` is the one of the session."""
    return Assignment(
        tenant=tenant,
        feature=feature,
        text=text,
        model=writer.model,
        default_model=model,
        url=writer.url,
        key=writer.api_key.get_secret_value() if writer.api_key else None,
        parameters=writer.parameters,
        schema=schema,
        timeout=writer.timeout,
    )


def json_in(answer: str, wanted: Callable[[object], bool]) -> object | None:
    """The first ``wanted`` value in an answer that may have fences, thoughts or talk around it."""
    decoder = json.JSONDecoder()
    at = 0
    for found in islice(_BEGINS.finditer(answer), MOST_TRIES):
        if found.start() < at:
            continue  # within a value that is not wanted
        try:
            value: object
            value, at = decoder.raw_decode(answer, found.start())
        except (ValueError, RecursionError):
            continue
        if wanted(value):
            return value
    return None
