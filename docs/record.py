"""Records docs/demo.svg: the first scenes of ``memory-proxy demo``, as a terminal shows them."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from proxy import demo
from proxy.demo.screen import SCENES

PICTURE = Path(__file__).with_name("demo.svg")
SCENES_SHOWN = 3
COLUMNS = 84


def record() -> str:
    """The picture as SVG.  The same for the same demo: the port that was free is left out."""
    screen = Console(
        file=io.StringIO(),
        record=True,
        width=COLUMNS,
        force_terminal=True,
        color_system="truecolor",
    )
    demo.run(screen, SCENES[:SCENES_SHOWN])
    picture = screen.export_svg(title="memory-proxy demo", unique_id="demo")
    # Rich has the letters come from another host; the reader's own will do.
    picture = re.sub(r"@font-face \{[^}]*\}\s*", "", picture)
    return re.sub(r"(127\.0\.0\.1):\d+", r"\1:18080", picture, count=1)


if __name__ == "__main__":
    PICTURE.write_text(record(), encoding="utf-8")
