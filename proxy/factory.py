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


class Factory:
    """Makes the application; can be pickled, so that worker processes make their own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self) -> Application:
        return app.application(self._settings)
