"""ShellGPT, which can be told a base URL and no headers."""

from __future__ import annotations

import tempfile

from application import KEY, MODEL, Place, serve
from commands import ran


def asked(place: Place, text: str, home: str, *options: str) -> str:
    return ran(
        "sgpt",
        *("--model", MODEL, "--no-md", "--no-cache", *options, text),
        HOME=home,
        API_BASE_URL=place.url_of_session,
        OPENAI_API_KEY=KEY,
        OPENAI_USE_FUNCTIONS="false",
        PRETTIFY_MARKDOWN="false",
    )


def say(place: Place, text: str) -> str:
    return asked(place, text, tempfile.mkdtemp())


def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    """It always streams."""
    assert streamed
    home = tempfile.mkdtemp()
    return [asked(place, text, home, "--chat", "one") for text in texts]


serve(say, converse)
