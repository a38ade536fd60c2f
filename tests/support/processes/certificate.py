"""TLS for tests on loopback: an authority of our own and one server certificate, good until 2126.

The authority's key is gone; the server's lies beside it in ``server.pem`` and protects nothing.
"""

from __future__ import annotations

import ssl
from pathlib import Path

_FOLDER = Path(__file__).with_name("tls")
CA_FILE = _FOLDER / "ca.pem"


def server_context() -> ssl.SSLContext:
    """For a server at 127.0.0.1 or localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_FOLDER / "server.pem")
    return context
