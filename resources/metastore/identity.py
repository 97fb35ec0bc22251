"""Whose metadata lies behind an address, and do all hosts of one address list have the same?

Owns: a client follows whichever host of its list answers first, so hosts of two clusters in one
list would have it write into either. A cluster is told by what lies there: BookKeeper's INSTANCEID
and the names below /admin/clusters. A host that does not answer says nothing.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from tiering_assets.resources.errors import RefusedError, TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.store_uri import ZooKeeperAddress, parse_store_uri
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.settings import MetadataSettings

_CLUSTERS_PATH = "/admin/clusters"
_ASK_TIMEOUT_S = 3.0
ONE_ENSEMBLE = "name hosts of one ensemble alone in metadata.store (TIERKEEPER_METADATA_STORE)"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells clusters apart. None: there is no such node."""

    instance: str | None
    clusters: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.clusters) or "none"
        return f"BookKeeper instance {self.instance or 'none'}, clusters {names}"


def identity_of(store: MetadataStore, ledgers_root: str) -> Identity:
    """Whose metadata lies there. MetadataError if the store does not answer."""
    root = ledgers_root.rstrip("/")
    instance = None
    if store.get(f"{root}/INSTANCEID") is not None:
        instance = LedgerDirectory(store, root).instance_id()
    clusters = [name for name in store.children(_CLUSTERS_PATH) if name != "global"]
    return Identity(instance, tuple(sorted(clusters)))


def identity_at(settings: MetadataSettings, address: ZooKeeperAddress) -> Identity:
    """The same of an address, which is given a few seconds to answer."""
    with closing(
        ZooKeeperStore(
            str(address),
            session_timeout_s=settings.session_timeout_s,
            connect_timeout_s=min(settings.connect_timeout_s, _ASK_TIMEOUT_S),
        )
    ) as store:
        return identity_of(store, settings.ledgers_root)


def identities(settings: MetadataSettings) -> dict[str, Identity | TierkeeperError]:
    """Each host of metadata.store asked by itself, all at once; an error is its answer, too."""
    ours = parse_store_uri(settings.store)

    def ask(host: str) -> Identity | TierkeeperError:
        try:
            return identity_at(settings, ZooKeeperAddress((host,), ours.chroot))
        except TierkeeperError as error:
            return error

    with ThreadPoolExecutor(len(ours.hosts)) as threads:
        return dict(zip(ours.hosts, threads.map(ask, ours.hosts), strict=True))


def difference(found: dict[str, Identity]) -> str | None:
    """In words, where hosts of one list are not of one cluster."""
    if len(set(found.values())) < 2:
        return None
    told = "; ".join(f"{host} has {identity}" for host, identity in found.items())
    return f"the hosts of metadata.store are not of one ZooKeeper: {told}"


@functools.cache
def require_one_cluster(settings: MetadataSettings) -> None:
    """Refuse a list of hosts of different clusters; asked once a process, and not of a single host.

    Raises:
        RefusedError: names each host and what it has.
    """
    if len(parse_store_uri(settings.store).hosts) == 1:
        return
    answers = identities(settings)
    problem = difference({h: one for h, one in answers.items() if isinstance(one, Identity)})
    if problem is not None:
        raise RefusedError(f"{problem}; {ONE_ENSEMBLE}")
