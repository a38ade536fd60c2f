"""The kinds of what is learned: what is derived from the list."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import proxy
from proxy.learning.kinds import KINDS, Kinds
from proxy.memory_api.openapi.document import DocumentOptions, document
from proxy.memory_api.operations import OPERATIONS
from proxy.memory_api.shapes.people import memory_kinds
from proxy.settings import ProfileSettings

KNOWN = Kinds()
CONSOLE = Path(proxy.__file__).parent / "console"


def test_each_kind_has_its_section_of_the_settings() -> None:
    profile = ProfileSettings()
    assert set(profile.learned) == {kind.name for kind in KINDS}
    assert all(kind.settings(profile) is profile.learned[kind.name] for kind in KINDS)
    assert list(profile.writers) == ["summary", *profile.learned]


def test_what_the_proxy_has_learned_is_its_own() -> None:
    ours = ("facts", "profile", "profiles", "episodes", "learned", "card", "feedback")
    assert set(ours) <= KNOWN.labels


def test_only_the_proxys_own_namespaces_are_reserved() -> None:
    for name in KNOWN.labels:
        assert KNOWN.is_reserved(("users", "kai", name)) and KNOWN.is_reserved(
            ("users", "kai", name, "x")
        )
        assert not KNOWN.is_reserved((name,)) and not KNOWN.is_reserved(("users", name, "x"))
        assert not KNOWN.is_reserved(("users", "kai", "x", name)) and not KNOWN.is_reserved(
            ("a", "kai", name)
        )
    assert KNOWN.is_reserved(("instructions",)) and KNOWN.is_reserved(("instructions", "x"))
    assert not KNOWN.is_reserved(()) and not KNOWN.is_reserved(("users", "kai"))
    assert not KNOWN.is_reserved(("users", "kai", "instructions"))


def test_the_document_and_the_console_know_all_kinds() -> None:
    schemas = document(DocumentOptions(), OPERATIONS)["components"]["schemas"]
    kinds = {*memory_kinds(KNOWN, "passage")}
    assert set(schemas["Memory"]["properties"]["kind"]["enum"]) == kinds
    assert set(_list_of("saved.js", "RESERVED")) == KNOWN.labels
    assert _list_of("memories.js", "KINDS") == [*memory_kinds(KNOWN)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_console_has_a_name_for_each_kind(language: str) -> None:
    files = sorted((CONSOLE / "i18n").glob(f"{language}*.js"))
    named = set(re.findall(r'^ +"([a-z.]+)":', "".join(map(_text, files)), re.MULTILINE))
    listed = {kind.memory for kind in KNOWN.listed}
    wanted = {f"{group}.{kind}" for group in ("kind", "one", "piece") for kind in listed}
    assert wanted | {f"block.{kind.name}" for kind in KINDS} <= named


def _list_of(file: str, name: str) -> list[str]:
    (listed,) = re.findall(rf"{name} = .*?(\[.*?\])", _text(CONSOLE / "users" / file))
    found: list[str] = json.loads(listed)
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
