"""The settings: what they are, where they come from, what is wrong with them.

Knows names, types, defaults and rules; must not know what anything is used for, and touches
nothing outside the process but the files of the configuration.

``sections``  [server] [upstream] [store] [spool] [tenancy] [[clients]]
``memory``    [memory], its parts, and the inheritance of [profiles.NAME]
``written``   the parts of it that a model writes, and [background]
``upstreams`` [[upstreams]]
``model``     all of them together, and the rules between them
``sources``   command line, environment and file as sources of pydantic-settings
``content``   a value that is a file of its own
``load``      the settings of a start, or every problem told at once
``display``   the effective values with secrets masked
``file``      a configuration file with some of them
"""

from __future__ import annotations

from proxy.settings.display import effective, without_credentials
from proxy.settings.learned import RewriteSettings, SummarySettings, WriterSettings
from proxy.settings.load import SettingsError, load
from proxy.settings.memory import ProfileSettings, RecallSettings
from proxy.settings.model import Settings
from proxy.settings.sections import (
    DEMO,
    ClientSettings,
    ServerSettings,
    SpoolSettings,
    StoreSettings,
    TenancySettings,
    UpstreamSettings,
)
from proxy.settings.upstreams import ListedUpstream

__all__ = [
    "DEMO",
    "ClientSettings",
    "ListedUpstream",
    "ProfileSettings",
    "RecallSettings",
    "RewriteSettings",
    "ServerSettings",
    "Settings",
    "SettingsError",
    "SpoolSettings",
    "StoreSettings",
    "SummarySettings",
    "TenancySettings",
    "UpstreamSettings",
    "WriterSettings",
    "effective",
    "load",
    "without_credentials",
]
