"""Where to dial a bookie whose advertised address does not lead there from here.

Owns: the rewriting of advertised addresses, as `bookies.address_map` says it. Bookies advertise the
address of their own network; through a tunnel, a port forward or another DNS the way is another
one. A whole address beats a host alone, what is not listed is dialled as advertised, and what was
rewritten is not rewritten again. Applied where a connection is opened and nowhere else, so that
placements, descriptors and messages keep the names that the cluster uses.

Refuses, with the piece at fault: a piece without `=`, an empty host, a port that is none, an
address listed twice, and a host alone that leads to one port, for a bookie has several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tiering_assets.resources.errors import SettingsError

Address = tuple[str, int]

_SYNTAX = "expected HOST:PORT=HOST:PORT or HOST=HOST, separated by commas"
# An IPv6 host stands in brackets; in an Address it has none.
_PLACE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:=\[\]]+))(?::(?P<port>[0-9]+))?")
_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class AddressMap:
    """Advertised address, or host alone, to the one to dial. Empty changes nothing."""

    addresses: Mapping[Address, Address] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> AddressMap:
        """Read `10.0.0.1:3181=127.0.0.1:13181, bookie-1.internal=127.0.0.1`.

        Raises:
            SettingsError: names the piece that is not understood.
        """
        addresses: dict[Address, Address] = {}
        hosts: dict[str, str] = {}
        seen: set[tuple[str, int | None]] = set()
        for piece in filter(None, (piece.strip() for piece in text.split(","))):
            advertised, equals, dialled = piece.partition("=")
            if not equals:
                raise _refused(piece, _SYNTAX)
            (host, port), (to_host, to_port) = _place(piece, advertised), _place(piece, dialled)
            if port is None and to_port is not None:
                raise _refused(
                    piece, f"{host} alone stands for all of its ports: name the port it has, too"
                )
            if (host, port) in seen:
                raise _refused(piece, f"{advertised.strip()} is listed twice")
            seen.add((host, port))
            if port is None:
                hosts[host] = to_host
            else:
                addresses[host, port] = (to_host, port if to_port is None else to_port)
        return cls(addresses, hosts)

    def dialled(self, advertised: Address) -> Address:
        """The address to connect to."""
        host, port = advertised
        found = self.addresses.get((host.lower(), port))
        return found or (self.hosts.get(host.lower(), host), port)

    def told(self, advertised: Address) -> str:
        """Both addresses for a message; one where they are the same."""
        dialled = self.dialled(advertised)
        if dialled == advertised:
            return shown(advertised)
        return f"{shown(advertised)} (by bookies.address_map {shown(dialled)})"


def shown(address: Address) -> str:
    """`host:port`, an IPv6 host in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _place(piece: str, text: str) -> tuple[str, int | None]:
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise _refused(piece, _SYNTAX)
    port = None if match["port"] is None else int(match["port"])
    if port is not None and not 0 < port <= _PORT_MAX:
        raise _refused(piece, f"{port} is not a port")
    return (match["six"] or match["host"]).lower(), port  # names of hosts have no case


def _refused(piece: str, why: str) -> SettingsError:
    return SettingsError(f"bookies.address_map: {piece!r}: {why}")
