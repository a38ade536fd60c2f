"""Simon Willison's llm, told of the proxy in its extra-openai-models.yaml."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from application import KEY, MODEL, Place, serve
from commands import ran


def home(place: Place) -> Path:
    """JSON is YAML."""
    folder = Path(tempfile.mkdtemp())
    model = {
        "model_id": "through-the-proxy",
        "model_name": MODEL,
        "api_base": place.url,
        "api_key_name": "proxy",
        "headers": place.headers,
    }
    (folder / "extra-openai-models.yaml").write_text(json.dumps([model]))
    (folder / "keys.json").write_text(json.dumps({"proxy": KEY}))
    return folder


def say(place: Place, text: str) -> str:
    return ran("llm", "-m", "through-the-proxy", text, LLM_USER_PATH=str(home(place)))


def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    folder = str(home(place))
    options = ["-m", "through-the-proxy", *([] if streamed else ["--no-stream"])]
    first, *rest = texts
    answers = [ran("llm", *options, first, LLM_USER_PATH=folder)]
    return answers + [ran("llm", "-c", *options, text, LLM_USER_PATH=folder) for text in rest]


serve(say, converse)
