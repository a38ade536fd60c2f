"""``python -m proxy`` is the ``memory-proxy`` command."""

from __future__ import annotations

from proxy.cli import main

if __name__ == "__main__":
    main()
