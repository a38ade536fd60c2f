"""What the model is asked: the operator's template, filled in.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from proxy.settings.written import SummarySettings

VARIABLE = re.compile(r"\{(summary|new_lines|focus|max_tokens)\}")


def fill(settings: SummarySettings, summary: str, new_lines: str) -> str:
    """The text of the request; ``summary`` is "" for the first one.

    One pass: what is put in is never searched, and all other braces stay.  A focus that the
    template has no place for comes first, for templates often end where the model is to go on.
    """
    values: Mapping[str, str] = {
        "summary": summary,
        "new_lines": new_lines,
        "focus": settings.focus,
        "max_tokens": str(settings.max_tokens),
    }
    text = VARIABLE.sub(lambda variable: values[variable[1]], settings.prompt)
    if settings.focus and "{focus}" not in settings.prompt:
        return f"Pay special attention to: {settings.focus}\n\n{text}"
    return text
