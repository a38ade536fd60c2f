"""Writes a configuration file with some settings, with the comments of ``proxy.toml``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from proxy.settings.model import Settings

_INSTALLED = Path(__file__).with_name("proxy.toml")

REFERENCE = (
    _INSTALLED if _INSTALLED.exists() else Path(__file__).parents[2] / "config" / "proxy.toml"
)
"""The file with every setting, its default, and a comment above it."""

_SECTION, _SETTING = re.compile(r"\[(.+)\]"), re.compile(r"#?(\w+) = ")


def comments() -> Mapping[str, str]:
    """The comment of each setting, by its dotted name."""
    found: dict[str, str] = {}
    section, said = "", ""
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if heading := _SECTION.fullmatch(line):
            section, said = heading[1], ""
        elif setting := _SETTING.match(line):
            found.setdefault(f"{section}.{setting[1]}", said)
            said = ""
        else:
            said = f"{said}{line}\n" if line.startswith("# ") else ""
    return found


def render_file(settings: Settings, names: Sequence[str]) -> str:
    """A TOML file with these settings, named ``section.name``; all else keeps its default."""
    said, sections = comments(), dict[str, str]()
    for dotted in names:
        section, _, name = dotted.partition(".")
        # Text, numbers, switches and lists of them are written as JSON has them.
        value = json.dumps(getattr(getattr(settings, section), name), ensure_ascii=False)
        above = sections.get(section, f"[{section}]\n")
        sections[section] = f"{above}{said[dotted]}{name} = {value}\n"
    return "\n".join(sections.values())
