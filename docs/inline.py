"""Drawings stand in the pages themselves, so that they follow the page's own light and dark.

As files (on a code host, say) they follow the system's.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

FOLDER = "drawings/"


class Drawings(SphinxPostTransform):
    """Puts in place of each image from docs/drawings its SVG, named by the image's text."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for image in list(self.document.findall(nodes.image)):
            if image["uri"].startswith(FOLDER):
                image.replace_self(nodes.raw("", self._figure(image), format="html"))

    def _figure(self, image: nodes.image) -> str:
        svg = Path(self.env.srcdir, image["uri"]).read_text(encoding="utf-8")
        named = svg.replace("<svg ", f'<svg aria-label="{escape(image["alt"])}" ', 1)
        return f'<figure class="drawing">{named}</figure>'


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(Drawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
