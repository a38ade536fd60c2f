"""The extras of the package: what some need and most do not."""

from __future__ import annotations


def installing(extra: str) -> str:
    """How somebody gets an extra, whichever way the proxy was installed."""
    return f"pip install '.[{extra}]' in a clone, or 'FILE.whl[{extra}]' with the wheel's file"
