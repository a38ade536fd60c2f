"""Store URLs: reading them, and the one name that each store has.  Pure.

The name is what spooled exchanges belong to: the same store has the same name however its URL was
written, and no name holds a password.  Of a Cluster or a Sentinel service the hosts in the name are
some that know it, in an order of their own: see ``is_same_store``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

Kind = Literal["memory", "sqlite", "redis", "cluster", "sentinel"]

FORMS = (
    "sqlite:///relative.db",
    "sqlite:////absolute.db",
    "redis://host:6379/0",
    "rediss://host:6379/0",
    "redis+cluster://host:6379",
    "redis+sentinel://host:26379/service",
    "memory://",
)
"""What may be written; the Redis forms take ``user:password@``, and ``rediss`` for TLS."""

_KINDS: Mapping[str, Kind] = {
    "memory": "memory",
    "sqlite": "sqlite",
    "redis": "redis",
    "rediss": "redis",
    "redis+cluster": "cluster",
    "rediss+cluster": "cluster",
    "redis+sentinel": "sentinel",
    "rediss+sentinel": "sentinel",
}
_PORTS: Mapping[Kind, int] = {"redis": 6379, "cluster": 6379, "sentinel": 26379}
_NO_FILE = re.compile(r"^/?[?#\s]|\0")
_TLS_OPTIONS = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs"})
_SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
_QUOTE = "in a password write / as %2F and ? as %3F"


@dataclass(frozen=True, slots=True)
class Address:
    """A store URL, taken apart.  ``options`` go to the Redis client as they are."""

    kind: Kind
    name: str
    path: Path = Path()
    nodes: tuple[tuple[str, int], ...] = ()
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    db: int = 0
    service: str = ""
    tls: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_address(url: str) -> Address:
    """Take a store URL apart.  Raises ValueError with a sentence that says what to write.

    What may be a part of a password, written where none belongs, is not repeated.
    """
    scheme, separator, rest = url.partition("://")
    kind = _KINDS.get(scheme.lower()) if separator else None
    if kind is None:
        quoted = f" {scheme!r}" if separator and scheme.isidentifier() else ""
        raise ValueError(f"unknown store{quoted}: write one of {', '.join(FORMS)}")
    if kind == "memory":
        return _memory(rest)
    if kind == "sqlite":
        return _sqlite(rest)
    return _redis(kind, scheme.lower(), rest)


def is_same_store(name: str, other: str) -> bool:
    """Whether two names are those of one store.

    Hosts of a Cluster, and Sentinels, come and go, and those that are written are only where to
    ask: names that have one of them in common, and the service and database, mean the same.  The
    service alone does not tell: it is called ``mymaster`` nearly everywhere.
    """
    if name == other:
        return True
    try:
        one, two = read_address(name), read_address(other)
    except ValueError:
        return False
    same = (one.kind, one.tls, one.service, one.db) == (two.kind, two.tls, two.service, two.db)
    return same and not set(one.nodes).isdisjoint(two.nodes)


def _memory(rest: str) -> Address:
    if rest not in ("", "/"):
        raise ValueError("the store in memory has no name: write memory://")
    return Address("memory", "memory://")


def _sqlite(rest: str) -> Address:
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or not path or path[-1] == "/" or _NO_FILE.search(path):
        raise ValueError("write sqlite:///relative.db or sqlite:////absolute.db")
    if path.startswith(":"):
        raise ValueError("SQLite needs a file; for a store in memory write memory://")
    absolute = Path(path).absolute()
    return Address("sqlite", f"sqlite:///{absolute}", path=absolute)


def _redis(kind: Kind, scheme: str, rest: str) -> Address:
    location, _, query = rest.partition("?")
    authority, _, path = location.partition("/")
    if "@" in path:
        raise ValueError(_QUOTE)
    options = _options(kind, scheme, query)
    credentials, _, hosts = authority.rpartition("@")
    username, _, password = credentials.partition(":")
    nodes = _nodes(hosts, kind)
    service, db = _service_and_db(kind, path)
    place = ",".join(f"{_bracketed(host)}:{port}" for host, port in sorted(set(nodes)))
    where = {"redis": f"/{db}", "cluster": "", "sentinel": f"/{service}/{db}"}[kind]
    return Address(
        kind,
        f"{scheme}://{place}{where}",
        nodes=nodes,
        username=unquote(username) or None,
        password=unquote(password) or None,
        db=db,
        service=unquote(service),
        tls=scheme.startswith("rediss"),
        options=options,
    )


def _nodes(hosts: str, kind: Kind) -> tuple[tuple[str, int], ...]:
    names = hosts.split(",")
    if kind == "redis" and len(names) > 1:
        raise ValueError("several hosts need redis+cluster:// or redis+sentinel://")
    return tuple(_node(name, _PORTS[kind]) for name in names)


def _node(name: str, default: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{name}")
        return parts.hostname or "localhost", parts.port or default
    except ValueError as error:
        raise ValueError(f"that is no host:port: write one like localhost:{default}") from error


def _service_and_db(kind: Kind, path: str) -> tuple[str, int]:
    service, db = "", path
    if kind == "sentinel":
        service, _, db = path.partition("/")
        if not service:
            raise ValueError("name the service: write redis+sentinel://host:26379/service")
    if db and not (db.isascii() and db.isdigit()):
        raise ValueError("a database is a number: write redis://host:6379/0")
    if kind == "cluster" and int(db or 0):
        raise ValueError("a cluster has database 0 only: write redis+cluster://host:6379")
    return service, int(db or 0)


def _options(kind: Kind, scheme: str, query: str) -> dict[str, str]:
    allowed = _TLS_OPTIONS if scheme.startswith("rediss") else frozenset[str]()
    allowed |= _SENTINEL_OPTIONS if kind == "sentinel" else frozenset()
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(options.keys() - allowed)
    if unknown:
        if "@" in query:  # an option's value may have one
            raise ValueError(_QUOTE)
        known = ", ".join(sorted(allowed)) or "none"
        quoted = f" {unknown[0]!r}" if unknown[0].isidentifier() else ""
        raise ValueError(f"unknown option{quoted} in the store URL; known here: {known}")
    return options


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
