"""The installed command, and ``python -m memory_proxy``: the package ``proxy``, once it is ours.

Its name is a common one.  A ``proxy.py`` on ``PYTHONPATH``, or where ``python -m`` is started, is
found first; and the package ``proxy.py`` of the index puts a ``proxy`` of its own over ours.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

OURS = Path(__file__).with_name("proxy") / "__init__.py"


def main() -> None:
    """Run the command line.  Ends with 1 and a sentence where another ``proxy`` is in the way."""
    problem = in_the_way()
    if problem is not None:
        sys.exit(f"memory-proxy: {problem}")
    import_module("proxy.cli").main()


def in_the_way() -> str | None:
    """Why ``proxy`` is not ours and what to do, None where it is."""
    spec = find_spec("proxy")
    found = spec.origin if spec is not None else None
    if found is None or not OURS.exists() or not OURS.samefile(found):
        return (
            f"{found or 'nothing'} is what Python finds as proxy: take its folder off PYTHONPATH, "
            "start with memory-proxy or python -P, or rename it"
        )
    if not hasattr(import_module("proxy"), "__version__"):
        return (
            "another package has put its files over ours, as proxy.py of the index does: "
            "install memory-proxy into an environment of its own"
        )
    return None


if __name__ == "__main__":
    main()
