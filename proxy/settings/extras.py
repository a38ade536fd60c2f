"""The extras of the package: what some need and most do not."""

from __future__ import annotations


def install_commands(extra: str) -> str:
    return f"pip install '.[{extra}]' in a clone, or 'FILE.whl[{extra}]' with the wheel's file"
