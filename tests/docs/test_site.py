"""The site of docs/ is built without a warning, and needs nobody else to be read."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.pictures import FOLDER, PICTURES
from docs.reference import written
from proxy.memory_api.openapi.document import DocumentOptions, document
from proxy.memory_api.operations import OPERATIONS
from tests.support.pages import PAGES, name_of
from tests.support.processes.program import ROOT, surroundings

SECONDS = 240
"""It takes ten, and on a busy machine many times that."""

pytestmark = [pytest.mark.xdist_group("site")]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-d", str(folder / "doctrees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", str(folder / "html")],
        cwd=ROOT,
        env=surroundings(PYTHONWARNINGS="ignore"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


class Loaded(HTMLParser):
    """Collects what a browser fetches to show a page: not what its links lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "link" and found.get("rel") in ("search", "index", "next", "prev", "canonical"):
            return
        for name in ("src", "srcset", "data", "poster"):
            self.urls += [found[name] or ""] if name in found else []
        if tag == "link":
            self.urls.append(found.get("href") or "")


def test_every_page_is_built(site: Path) -> None:
    pages = {name_of(path).removesuffix(".md") for path in PAGES if path.name != "README.md"}
    built = (path.relative_to(site).with_suffix("") for path in site.rglob("*.html"))
    assert pages <= {path.as_posix() for path in built}


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    foreign = [url for url in fetched(site) if re.match(r"(?:\w+:)?//", url)]
    assert not foreign


def fetched(site: Path) -> Iterator[str]:
    for page in site.glob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        yield from loaded.urls
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        yield from re.findall(r"""(?:url\(|@import )["']?([^"')]+)""", text)


def test_the_search_has_its_index_in_the_site(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "reconcili" in index


def test_drawings_stand_in_the_pages_and_say_what_they_show(site: Path) -> None:
    text = (site / "windows.html").read_text(encoding="utf-8")
    drawn = re.findall(r'<svg aria-label="([^"]+)"[^>]*class="drawing-svg"', text)
    assert len(drawn) == 2
    assert drawn[1].startswith("A window of ten turns.")


def test_the_reference_has_every_operation(site: Path) -> None:
    text = (site / "api-reference.html").read_text(encoding="utf-8")
    told = {re.sub(r"<[^>]+>", "", found) for found in re.findall(r"<h3>(.*?)<a", text)}
    assert {f"{operation.method} {operation.path}" for operation in OPERATIONS} <= told


def test_the_reference_names_parameters_answers_and_fields() -> None:
    text = written(document(DocumentOptions(), OPERATIONS))
    assert "| `session` | path |" in text
    assert re.search(r"^\| 404 \| .*There is no such session", text, re.MULTILINE)
    assert re.search(r"^\| `exchange_id` \| ", text, re.MULTILINE)


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawing_is_what_its_script_draws(name: str) -> None:
    drawn = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == PICTURES[name]().svg()
