"""Making the application where it will run.

A supervisor hands this to its workers and needs nothing of the application itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.lazy import late
from proxy.settings import Settings

if TYPE_CHECKING:
    from proxy import app
    from proxy.cors import Application
else:
    app = late("proxy.app")


def application(settings: Settings) -> Application:
    """The application.  This can be pickled, so that worker processes make their own."""
    return app.application(settings)
