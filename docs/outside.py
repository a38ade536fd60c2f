"""Files outside docs/ that are pages of the site too: links to the files lead to the pages."""

from __future__ import annotations

from sphinx.application import Sphinx

PAGES = {"../bench/README.md": "bench.md", "../CHANGELOG.md": "changelog.md"}


def _lead_inside(app: Sphinx, docname: str, source: list[str]) -> None:
    for file, page in PAGES.items():
        source[0] = source[0].replace(f"]({file}", f"]({page}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _lead_inside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
