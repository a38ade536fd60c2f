"""The console's words: the same in every language, and none missing or idle."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from proxy.console.pages import FOLDER
from tests.support.processes.node import node_with_packages

USED = re.compile(r'\bt\(\s*"([^"]+)"')
NAMED = re.compile(r"[\"`]([a-z0-9_.-]+)[\"`]")
PLACE = re.compile(r"\{(\w+)\}")

Words = dict[str, Any]


def words(language: str) -> Words:
    """A language's dictionary, as Node reads it."""
    paths = sorted((FOLDER / "i18n").glob(f"{language}*.js"))
    files = [json.dumps(path.as_uri()) for path in paths]
    script = (
        "const all = [];"
        + "".join(f"all.push((await import({file})).default);" for file in files)
        + "console.log(JSON.stringify(all));"
    )
    command = [node_with_packages(), "--input-type=module", "--eval", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    parts: list[Words] = json.loads(ran.stdout)
    every = [key for part in parts for key in part]
    assert len(every) == len(set(every)), "a word is in two files"
    return {key: text for part in parts for key, text in part.items()}


@pytest.fixture(scope="module")
def english() -> Words:
    return words("en")


@pytest.fixture(scope="module")
def chinese() -> Words:
    return words("zh")


def sources() -> list[Path]:
    return [
        path
        for path in FOLDER.rglob("*.js")
        if not {"vendor", "i18n"} & set(path.relative_to(FOLDER).parts)
    ]


def forms(text: str | dict[str, str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


@pytest.mark.node
def test_both_languages_have_the_same_words_with_the_same_places(
    english: Words, chinese: Words
) -> None:
    assert english.keys() == chinese.keys()
    for key in english:
        ours, theirs = (
            {place for form in forms(text[key]) for place in PLACE.findall(form)}
            for text in (english, chinese)
        )
        assert ours == theirs, key


@pytest.mark.node
def test_no_text_is_empty_and_chinese_is_chinese(chinese: Words, english: Words) -> None:
    for key, text in {**english, **chinese}.items():
        assert all(form.strip() for form in forms(text)), key
    latin = {key for key, text in chinese.items() if not re.search(r"[\u4e00-\u9fff]", str(text))}
    assert all(len(str(chinese[key])) < 12 for key in latin), latin


@pytest.mark.node
def test_every_word_that_is_used_is_there(english: Words) -> None:
    for path in sources():
        missing = set(USED.findall(path.read_text(encoding="utf-8"))) - english.keys()
        assert not missing, (path.name, missing)


@pytest.mark.node
def test_no_word_is_idle(english: Words) -> None:
    """Some are put together from a group and a name of the API's: `kind.${kind}`."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources())
    text += (FOLDER / "i18n" / "index.js").read_text(encoding="utf-8")
    named = set(NAMED.findall(text)) | {f"stats.{name}" for name in NAMED.findall(text)}
    groups = set(re.findall(r"t\(`([\w.]+\.)\$\{", text)) | set(
        f"{group}." for group in re.findall(r'named\("([\w.]+)"', text)
    )
    idle = {
        key
        for key in english
        if key not in named and not any(key.startswith(group) for group in groups)
    }
    assert not idle
