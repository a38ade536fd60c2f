"""The libraries of others in the console: what their list says is what is there."""

from __future__ import annotations

import hashlib
import re

from tests.support.browser.vendored import PACKAGES, VENDOR

OURS = {"README.md", "preact.js", "preact.d.ts"}
ROW = re.compile(r"^\| `(.+?)` \| (.+?) \| (.+?) \| (.+?) \| `(.+?)` \| `([0-9a-f]{64})` \|$", re.M)


def listed() -> list[tuple[str, ...]]:
    return ROW.findall((VENDOR / "README.md").read_text(encoding="utf-8"))


def test_every_file_is_the_one_that_the_list_says() -> None:
    for name, *_, digest in listed():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_the_list_is_of_every_file() -> None:
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    assert there - OURS == {name for name, *_ in listed()}


def test_the_list_is_of_the_versions_that_are_fetched() -> None:
    wanted = {
        (name, package.name, package.version, source)
        for package in PACKAGES
        for source, name in package.files.items()
    }
    assert {
        (name, package, version, source) for name, package, version, _, source, _ in listed()
    } == (wanted)


def test_every_package_brings_its_licence_and_one_that_may_be_passed_on() -> None:
    assert {licence for _, _, _, licence, _, _ in listed()} <= {"MIT", "Apache-2.0"}
    for package in PACKAGES:
        assert any(name.endswith("LICENSE") for name in package.files.values()), package.name


def test_nothing_loads_from_another_host() -> None:
    for path in VENDOR.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?:from|import\()\s*['\"](?:https?:|//)", text), path
        assert "sourceMappingURL" not in text, path
