"""Boxes, arrows and words as SVG that is legible in light and in dark.

Inside the site the theme's colours count (Furo's variables), elsewhere the system's light or dark.
All measures are in SVG units; a line of text is about 18 high.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Literal

Kind = Literal["plain", "memory", "new", "faded", "store"]
Anchor = Literal["start", "middle", "end"]

LINE = 18

STYLE = """
.drawing-svg {
  --ink: var(--color-foreground-primary, #1f2328);
  --soft: var(--color-foreground-secondary, #57606a);
  --line: var(--color-foreground-border, #8c959f);
  --paper: var(--color-background-secondary, #f6f8fa);
  --mark: var(--color-brand-primary, #0a56a8);
  font-family: system-ui, sans-serif;
}
@media (prefers-color-scheme: dark) {
  .drawing-svg {
    --ink: var(--color-foreground-primary, #e6edf3);
    --soft: var(--color-foreground-secondary, #9da7b1);
    --line: var(--color-foreground-border, #6e7681);
    --paper: var(--color-background-secondary, #161b22);
    --mark: var(--color-brand-primary, #6cb2ff);
  }
}
.drawing-svg text { fill: var(--ink); font-size: 14px; }
.drawing-svg text.small { fill: var(--soft); font-size: 12.5px; }
.drawing-svg text.head { font-weight: 600; }
.drawing-svg rect { fill: var(--paper); stroke: var(--line); stroke-width: 1.2; }
.drawing-svg rect.memory { stroke: var(--mark); stroke-width: 1.8; }
.drawing-svg rect.new { fill: var(--mark); fill-opacity: .16; stroke: var(--mark); }
.drawing-svg rect.faded { fill: none; stroke-dasharray: 4 4; }
.drawing-svg rect.store { rx: 12; }
.drawing-svg path { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.drawing-svg path.head { fill: var(--soft); stroke: none; }
.drawing-svg path.dashed { stroke-dasharray: 4 4; }
"""


class Drawing:
    """A picture of a given size, drawn from back to front."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._parts: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, words: str = "", kind: Kind = "plain"
    ) -> None:
        """A box; its words, of one line or several, stand in the middle."""
        self._parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="5"/>'
        )
        lines = words.split("\n") if words else []
        top = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
        for index, line in enumerate(lines):
            self.text(x + width / 2, top + LINE * index, line, anchor="middle")

    def text(
        self, x: float, y: float, words: str, style: str = "", anchor: Anchor = "start"
    ) -> None:
        """One line, at its baseline; ``style`` is "small", "head" or nothing."""
        self._parts.append(
            f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def lines(self, x: float, y: float, lines: Sequence[str], style: str = "") -> None:
        for index, line in enumerate(lines):
            self.text(x, y + LINE * index, line, style)

    def arrow(
        self, x: float, y: float, to_x: float, to_y: float, words: str = "", dashed: bool = False
    ) -> None:
        """A straight arrow along one axis, with its words above its middle."""
        style = ' class="dashed"' if dashed else ""
        self._parts.append(f'<path{style} d="M{x} {y} L{to_x} {to_y}"/>')
        self._parts.append(f'<path class="head" d="{_tip(x, y, to_x, to_y)}"/>')
        if words:
            self.text((x + to_x) / 2, (y + to_y) / 2 - 7, words, "small", "middle")

    def bracket(self, x: float, y: float, height: float) -> None:
        """A brace that opens to the left."""
        self._parts.append(f'<path d="M{x} {y} h8 v{height} h-8"/>')

    def rule(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self._parts.append(f'<path class="dashed" d="M{x} {y} L{to_x} {to_y}"/>')

    def svg(self) -> str:
        width, height = self._size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing-svg" role="img" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
            f"<style>{STYLE}</style>\n" + "\n".join(self._parts) + "\n</svg>\n"
        )


def _tip(x: float, y: float, to_x: float, to_y: float) -> str:
    """The triangle at the end of an arrow."""
    if y == to_y:
        back = -9 if to_x > x else 9
        return f"M{to_x} {to_y} l{back} -5 v10 z"
    back = -9 if to_y > y else 9
    return f"M{to_x} {to_y} l-5 {back} h10 z"
