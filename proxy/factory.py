"""Makes the application in a worker process.

The supervisor passes this function to its workers and does not import the application itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.lazy import lazy_import
from proxy.settings import Settings

if TYPE_CHECKING:
    from proxy import app
    from proxy.cors import Application
else:
    app = lazy_import("proxy.app")


def application(settings: Settings) -> Application:
    """The application.  This can be pickled, so that worker processes make their own."""
    return app.application(settings)
