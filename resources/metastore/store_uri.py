"""The metadata-store URI of the settings: `zk:host:port,host:port/chroot`.

Owns: only ZooKeeper is accepted; every other store is refused by name before any connection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tiering_assets.resources.errors import SettingsError

_DEFAULT_PORT = 2181
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?", re.ASCII)
_REFUSED = {
    "oxia": "Oxia",
    "etcd": "etcd",
    "rocksdb": "RocksDB",
    "memory": "the in-memory store",
    "metadata-store": "a nested metadata-store URI",
}


@dataclass(frozen=True, slots=True)
class ZooKeeperAddress:
    """`hosts` are `host:port`; `chroot` is empty or starts with a slash."""

    hosts: tuple[str, ...]
    chroot: str

    def __str__(self) -> str:
        return f"zk:{','.join(self.hosts)}{self.chroot}"


def parse_store_uri(uri: str) -> ZooKeeperAddress:
    """Parse a store URI.

    Raises:
        SettingsError: another kind of store, or an address that cannot be one.
    """
    scheme, colon, rest = uri.strip().partition(":")
    if scheme in _REFUSED:
        raise SettingsError(
            f"metadata store {uri!r}: {_REFUSED[scheme]} is not supported, only ZooKeeper "
            "(zk:host:port[,host:port][/chroot])"
        )
    if scheme != "zk" or not colon:
        raise SettingsError(
            f"metadata store {uri!r}: expected zk:host:port[,host:port][/chroot], "
            f"found the scheme {scheme!r}"
        )
    addresses, slash, chroot = rest.removeprefix("//").partition("/")
    hosts = tuple(_host(uri, address) for address in re.split("[,;]", addresses))
    chroot = chroot.rstrip("/")
    if "//" in chroot:
        raise SettingsError(f"metadata store {uri!r}: an empty name in the chroot")
    return ZooKeeperAddress(hosts, f"/{chroot}" if slash and chroot else "")


def _host(uri: str, address: str) -> str:
    match = _HOST.fullmatch(address.strip())
    port = int(match.group(2) or _DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise SettingsError(f"metadata store {uri!r}: {address!r} is not host:port")
    return f"{match.group(1)}:{port}"
