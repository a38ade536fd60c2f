"""The routes of health, metrics and the memory API, in one table."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.routing import BaseRoute

from proxy.admin.access import Access
from proxy.admin.callers import Callers
from proxy.admin.context import Context
from proxy.admin.endpoint import Endpoint, Handler
from proxy.admin.erasing import Erasing
from proxy.admin.exchanges import Exchanges
from proxy.admin.exporting import Exporting
from proxy.admin.feedback import FeedbackOnMessages
from proxy.admin.forgetting import Forget
from proxy.admin.fork import Forks
from proxy.admin.health import Health
from proxy.admin.importing import Importing
from proxy.admin.instructions import ApplicationInstructions
from proxy.admin.items import StoredItems
from proxy.admin.message_edit import OneMessage
from proxy.admin.messages import Messages
from proxy.admin.openapi.serving import OpenApi
from proxy.admin.parts import AdminParts
from proxy.admin.people import People
from proxy.admin.profiles import Profiles
from proxy.admin.rewind import Rewind
from proxy.admin.session_edit import SessionEdit
from proxy.admin.session_list import SessionList
from proxy.admin.sessions import Sessions
from proxy.admin.stats import Stats
from proxy.admin.summaries import Summaries
from proxy.admin.usage import Usage
from proxy.admin.users import Users
from proxy.console.pages import Pages

__all__ = ["AdminParts", "admin_routes"]

SESSIONS = "/memory/v1/sessions"
SESSION = f"{SESSIONS}/(?P<session>[^/]+)"
EXCHANGE = f"{SESSION}/exchanges/(?P<exchange>[^/]+)"

USERS = "/memory/v1/users"
USER = f"{USERS}/(?P<user>[^/]+)"
MEMORIES = f"{USER}/memories"
MEMORY = f"{MEMORIES}/(?P<memory>[^/]+)"

MESSAGE = f"{SESSION}/messages/(?P<message>[^/]+)"
FEEDBACK = f"{MESSAGE}/feedback"
PROFILE = "/memory/v1/users/(?P<user>[^/]+)/profile"
APPLICATION = "/memory/v1/instructions/(?P<application>[^/]+)"
PROPOSALS = f"{APPLICATION}/proposals"
PROPOSAL = f"{PROPOSALS}/(?P<proposal>[^/]+)"

ITEMS = "/memory/v1/store/items"
NAMESPACES = "/memory/v1/store/namespaces"
USAGE = "/memory/v1/usage"
STATS = "/memory/v1/stats"
IMPORT = "/memory/v1/import"

FOUNDING = frozenset(
    {
        ("POST", f"{SESSION}/messages"),
        ("POST", MEMORIES),
        ("PUT", ITEMS),
        ("PATCH", PROFILE),
        ("PUT", APPLICATION),
        ("POST", IMPORT),
    }
)
"""What may be the first that there is of a tenant: what was exported can be put back anywhere."""

Table = Mapping[str, Mapping[str, Handler]]


def admin_routes(parts: AdminParts) -> list[BaseRoute]:
    """All of them; the last answers 404 for what is left of ``/memory``.

    They match the raw path, so they belong at the root of an application and not below a mount.
    """
    telemetry = parts.telemetry
    return [
        Endpoint("/", {"GET": Pages().welcome}, telemetry, "other"),
        *(Endpoint(path, table, telemetry, "health") for path, table in _health(parts).items()),
        *(Endpoint(path, table, telemetry, "memory") for path, table in _memory(parts).items()),
    ]


def _health(parts: AdminParts) -> Table:
    health = Health(parts)
    return {
        "/healthz": {"GET": health.healthz},
        "/readyz": {"GET": health.readyz},
        "/metrics": {"GET": health.metrics},
    }


def _memory(parts: AdminParts) -> Table:
    access = Access(parts)
    callers = Callers(parts, access)
    return {
        **_bound(_tenants(parts, access, callers), access),
        "/memory/v1/tenants": {"GET": callers.tenants},
        "/memory/v1/openapi.json": {"GET": OpenApi(parts.settings).get},
        **_console(),
        "/memory(?:/.*)?": {},
    }


def _bound(table: Table, access: Access) -> Table:
    """The table, its handlers for tenants that exist; but for those that may be their first."""
    return {
        path: {
            method: handler if (method, path) in FOUNDING else access.bound(handler)
            for method, handler in handlers.items()
        }
        for path, handlers in table.items()
    }


def _tenants(parts: AdminParts, access: Access, callers: Callers) -> Table:
    """All that is about the memory of one tenant."""
    messages = Messages(parts, access)
    summaries = Summaries(parts, access)
    context, users = Context(parts, access), Users(parts, access)
    items, usage = StoredItems(parts, access), Usage(parts, access)
    people = People(parts, access)
    erasing = Erasing(parts, access, people)
    return {
        **_sessions(parts, access, erasing),
        USERS: {"GET": people.listing},
        USER: {"GET": people.get, "DELETE": erasing.user},
        f"{SESSION}/messages": {"GET": messages.listing, "POST": messages.create},
        f"{SESSION}/context": {"POST": context.preview},
        f"{SESSION}/summaries": {"GET": summaries.listing},
        f"{SESSION}/summary/rebuild": {"POST": summaries.rebuild},
        f"{SESSION}/forget": {"POST": Forget(parts, access).forget},
        MEMORIES: {"GET": users.listing, "POST": users.create},
        f"{MEMORIES}/search": {"POST": users.search},
        MEMORY: {"GET": users.get, "PATCH": users.change, "DELETE": users.delete},
        ITEMS: {"PUT": items.put, "GET": items.get, "DELETE": items.delete},
        f"{ITEMS}/search": {"POST": items.search},
        NAMESPACES: {"POST": items.namespaces},
        USAGE: {"GET": usage.report},
        STATS: {"GET": Stats(parts, access).report},
        "/memory/v1/whoami": {"GET": callers.whoami},
        **_learned(parts, access),
        **_portable(parts, access),
    }


def _sessions(parts: AdminParts, access: Access, erasing: Erasing) -> Table:
    sessions, message = Sessions(parts, access), OneMessage(parts, access)
    edit, exchanges = SessionEdit(parts, access), Exchanges(parts, access)
    rewind = Rewind(parts, access)
    return {
        SESSIONS: {"GET": SessionList(parts, access).listing},
        SESSION: {"GET": sessions.get, "PATCH": edit.change, "DELETE": erasing.session},
        f"{SESSION}/fork": {"POST": Forks(parts, access).fork},
        f"{SESSION}/rewind": {"POST": rewind.rewind},
        MESSAGE: {"GET": message.get, "PATCH": message.change, "DELETE": message.delete},
        f"{MESSAGE}/activate": {"POST": rewind.activate},
        f"{SESSION}/exchanges": {"GET": exchanges.listing},
        EXCHANGE: {"GET": exchanges.get},
    }


def _console() -> Table:
    pages = Pages()
    return {
        "/memory": {"GET": pages.redirect},
        "/memory/": {"GET": pages.page},
        "/memory/console/(?P<file>.+)": {"GET": pages.file},
    }


def _portable(parts: AdminParts, access: Access) -> Table:
    exporting = Exporting(parts, access)
    return {
        "/memory/v1/export": {"GET": exporting.tenant},
        "/memory/v1/users/(?P<user>[^/]+)/export": {"GET": exporting.user},
        f"{SESSION}/export": {"GET": exporting.session},
        IMPORT: {"POST": Importing(parts, access).take},
    }


def _learned(parts: AdminParts, access: Access) -> Table:
    profiles, feedback = Profiles(parts, access), FeedbackOnMessages(parts, access)
    instructions = ApplicationInstructions(parts, access)
    return {
        FEEDBACK: {"GET": feedback.get, "POST": feedback.put},
        PROFILE: {"GET": profiles.get, "PATCH": profiles.patch},
        f"{PROFILE}/versions": {"GET": profiles.versions},
        f"{PROFILE}/rollback": {"POST": profiles.roll_back},
        APPLICATION: {"GET": instructions.get, "PUT": instructions.put},
        f"{APPLICATION}/versions": {"GET": instructions.versions},
        f"{APPLICATION}/rollback": {"POST": instructions.roll_back},
        PROPOSALS: {"GET": instructions.proposals},
        f"{PROPOSAL}/approve": {"POST": instructions.approve},
        f"{PROPOSAL}/reject": {"POST": instructions.reject},
        f"{APPLICATION}/reflect": {"POST": instructions.reflect},
    }
