"""The origin of a request by ``Origin``, ``Sec-Fetch-Site`` and ``Host``, which a browser sets and
web pages cannot.  Pure; knows no tenants.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

import msgspec

from proxy.errors import RawHeaders
from proxy.wire.headers import get_all

_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:/@\[\]\s]+))(?::[0-9]*)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?P<host>[^/?#@\s]+)")
_SAME_SITE = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site of requests by our own pages, or by the user without any page."""


class Trusted(msgspec.Struct, frozen=True):
    """Web pages that may use the proxy for the user of this machine, beside those of loopback
    hosts.

    ``origins`` as in the header, ``*`` for all; ``hosts`` with or without a port.
    """

    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, origins: tuple[str, ...], hosts: tuple[str, ...]) -> Trusted:
        return cls(frozenset(map(str.lower, origins)), frozenset(map(str.lower, hosts)))

    def admits(self, headers: RawHeaders) -> bool:
        """Whether a request comes from a program, or from a trusted page.

        All origins must be trusted if there are several.  A page that uses DNS rebinding has its
        own name as origin and as ``Host``, so ``Host`` alone proves nothing.  Without an origin the
        request must be same-origin, with a trusted ``Host``.
        """
        origins = header_values(headers, b"origin")
        sites = header_values(headers, b"sec-fetch-site")
        if origins:
            return all(map(self._is_origin, origins))
        if sites:
            hosts = header_values(headers, b"host")
            return _SAME_SITE.issuperset(sites) and len(hosts) == 1 and self._is_host(hosts[0])
        return True

    def _is_origin(self, origin: str) -> bool:
        if "*" in self.origins or origin in self.origins:
            return True
        match = _ORIGIN.fullmatch(origin)
        return match is not None and self._is_host(match["host"])

    def _is_host(self, host: str) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = f"[{match['six']}]" if match["six"] else match["name"]
        return not self.hosts.isdisjoint({host, name}) or is_loopback_host(host)


def header_values(headers: RawHeaders, name: bytes) -> list[str]:
    """Every value of a field, in lower case; ``name`` is lower case."""
    return [value.decode("latin-1").strip().lower() for value in get_all(headers, name)]


def is_loopback_host(host: str) -> bool:
    """Whether this ``Host`` (with or without port) is localhost or a loopback address."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    return match["name"] == "localhost" or is_loopback(match["six"] or match["name"])


def is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.is_loopback
    return parsed.is_loopback


def is_same_site(headers: RawHeaders) -> bool:
    """Whether there is exactly one loopback ``Host``, and no sign of a page of another site."""
    hosts = header_values(headers, b"host")
    if len(hosts) != 1 or not is_loopback_host(hosts[0]):
        return False
    origins = (_ORIGIN.fullmatch(origin) for origin in header_values(headers, b"origin"))
    same_host = all(match is not None and match["host"] == hosts[0] for match in origins)
    return same_host and _SAME_SITE.issuperset(header_values(headers, b"sec-fetch-site"))
