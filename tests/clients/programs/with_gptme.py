"""gptme, which can be told a base URL and no headers."""

from __future__ import annotations

import tempfile

from application import KEY, MODEL, Place, serve
from commands import ran


def say(place: Place, text: str) -> str:
    return ran(
        "gptme",
        *("--model", f"local/{MODEL}", "--non-interactive", "--no-confirm", "--tools", "none"),
        *("--system", "short", "--workspace", tempfile.mkdtemp(), text),
        HOME=tempfile.mkdtemp(),
        OPENAI_BASE_URL=place.url_of_session,
        OPENAI_API_KEY=KEY,
    )


serve(say)
