"""Whom the tests' programs trust: reading the system's authorities takes each client 45 ms.

Nothing in the tests meets a certificate of the world's, but what installs packages.
"""

from __future__ import annotations

import os
from pathlib import Path

NOBODY = str(Path(__file__).with_name("tls") / "nobody.pem")
"""One authority that signed nothing, and whose key is gone."""

_USED, _KEPT = "SSL_CERT_FILE", "TESTS_SSL_CERT_FILE"


def trust_nobody() -> None:
    """From here on, in this process and those that it starts."""
    if os.environ.get(_USED) != NOBODY:
        os.environ.update({_KEPT: os.environ.get(_USED, ""), _USED: NOBODY})


def with_the_systems() -> dict[str, str]:
    """Our environment as it was, for who fetches something."""
    kept = os.environ.get(_KEPT, "")
    others = {name: text for name, text in os.environ.items() if name not in (_USED, _KEPT)}
    return {**others, _USED: kept} if kept else others
