"""What an attack is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.attack.sending import Attacker

MEGABYTE = 1 << 20

Run = Callable[[Attacker], None]


@dataclass(frozen=True, slots=True)
class Attack:
    """``build`` makes what is sent; its result sends it.  ``after``: seconds watched behind it.

    ``restarts``: the proxy is then started anew on the same files and watched for as long.
    """

    name: str
    build: Callable[[], Run]
    after: float = 3.0
    restarts: bool = False
