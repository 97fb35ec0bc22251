"""Do all metadata addresses lead to one cluster, and may we read and write what lies there? Reads
only.

Owns: three addresses (metadata, configuration, BookKeeper), ours and those in the broker's runtime
configuration, and each host of ours by itself. What another address is, is told by what lies there
(BookKeeper's INSTANCEID, the names below /admin/clusters), not by how it is written; one that
cannot be asked and is not written like ours fails. Other stores than ZooKeeper are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.ground.finding import Finding, asked, fail, ok, skip, warn
from tiering_assets.resources.errors import SettingsError, TierkeeperError
from tiering_assets.resources.metastore.identity import (
    ONE_ENSEMBLE,
    Identity,
    difference,
    identities,
    identity_at,
    identity_of,
)
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.store_uri import ZooKeeperAddress, parse_store_uri
from tiering_assets.resources.metastore.topic_names import MANAGED_LEDGERS_ROOT
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.pulsar.admin import BrokerAdmin
from tiering_assets.resources.settings import Settings

_BROKERS_PATH = "/loadbalance/brokers"
_STORE_SETTINGS = ("metadataStoreUrl", "zookeeperServers")
_CONFIGURATION_SETTINGS = ("configurationMetadataStoreUrl", "configurationStoreServers")
_BOOKKEEPER_SETTING = "bookkeeperMetadataServiceUri"
_NEEDED = {"r": "READ", "w": "WRITE", "d": "DELETE of children"}


def check_addresses(
    settings: Settings, broker: BrokerAdmin | None, metadata: MetadataStore | None
) -> Iterator[Finding]:
    """Our hosts among themselves, then the broker's three addresses against them."""
    yield from asked("metadata hosts", lambda: check_hosts(settings))
    if broker is None:
        yield skip("broker metadata", "needs the broker")
        return
    yield from asked("broker metadata", lambda: check_stores(settings, broker, metadata))


def check_hosts(settings: Settings) -> Iterator[Finding]:
    """Each host of metadata.store asked by itself: a client follows whichever answers first."""
    if len(parse_store_uri(settings.metadata.store).hosts) == 1:
        return
    found: dict[str, Identity] = {}
    for host, answer in identities(settings.metadata).items():
        if isinstance(answer, Identity):
            found[host] = answer
        else:
            yield warn(
                "metadata hosts", f"{host} does not tell: {answer}", "start it, or leave it out"
            )
    problem = difference(found)
    if problem is not None:
        yield fail("metadata hosts", problem, ONE_ENSEMBLE)
    elif found:
        yield ok("metadata hosts", f"{', '.join(found)}: {next(iter(found.values()))}")


def check_stores(
    settings: Settings, broker: BrokerAdmin, metadata: MetadataStore | None
) -> Iterator[Finding]:
    """The broker must keep its metadata where we look, or we would publish into the void."""
    config = broker.runtime_config()
    ours = settings.metadata.store
    name = next((name for name in _STORE_SETTINGS if config.get(name)), None)
    if name is None:
        names = " or ".join(_STORE_SETTINGS)
        yield warn("broker metadata", f"the broker names none: {names}", "compare by hand")
    else:
        yield _compared(settings, metadata, "broker metadata", name, config[name], root=None)
    name = next((name for name in _CONFIGURATION_SETTINGS if config.get(name)), None)
    if name is not None:
        check = "broker configuration store"
        yield _compared(settings, metadata, check, name, config[name], root=None)
    if config.get(_BOOKKEEPER_SETTING):
        uri = config[_BOOKKEEPER_SETTING]
        root = "/" + uri.partition("://")[2].partition("/")[2] if "://" in uri else None
        yield _compared(
            settings, metadata, "broker BookKeeper metadata", _BOOKKEEPER_SETTING, uri, root=root
        )
    if metadata is not None:
        registered = set(metadata.children(_BROKERS_PATH))
        strangers = sorted(set(broker.list_brokers()) - registered)
        if strangers:
            yield fail(
                "broker registration",
                f"{', '.join(strangers)} not below {_BROKERS_PATH} of {ours}, which has "
                f"{', '.join(sorted(registered)) or 'none'}",
                "set metadata.store to the store of this broker",
            )
        else:
            yield ok("broker registration", "every live broker is registered in metadata.store")


def _compared(
    settings: Settings,
    metadata: MetadataStore | None,
    check: str,
    name: str,
    theirs: str,
    *,
    root: str | None,
) -> Finding:
    """One address of the broker. `root` is BookKeeper's part of a service URI, its path."""
    ours = settings.metadata.store
    lift = (
        f"set metadata.store to {theirs} (TIERKEEPER_METADATA_STORE), or broker.admin_url to a "
        f"broker of this cluster"
    )
    try:
        address = parse_store_uri(_as_zookeeper(theirs))
    except SettingsError as error:
        return fail(check, f"{name} of the broker is {theirs}: {error}", "only ZooKeeper is read")
    mine = parse_store_uri(ours)
    if root is not None:
        wanted = mine.chroot + settings.metadata.ledgers_root.rstrip("/")
        if address.chroot != wanted:
            return fail(
                check,
                f"{name} of the broker is {theirs}, whose ledgers lie below {address.chroot or '/'}, "
                f"metadata.store and metadata.ledgers_root say {wanted}",
                f"set metadata.ledgers_root to {address.chroot.removeprefix(mine.chroot) or '/'}",
            )
        address = ZooKeeperAddress(address.hosts, mine.chroot)
    if (set(address.hosts), address.chroot) == (set(mine.hosts), mine.chroot):
        return ok(check, f"{name}={theirs} is metadata.store")
    differs = f"{name} of the broker is {theirs}, metadata.store is {ours}"
    if metadata is None:
        return fail(check, f"{differs}, which does not answer", lift)
    try:
        their_identity = identity_at(settings.metadata, address)
    except TierkeeperError:
        return fail(check, f"{differs}; theirs cannot be asked from here", lift)
    our_identity = identity_of(metadata, settings.metadata.ledgers_root)
    if their_identity == our_identity and our_identity.instance is not None:
        return ok(check, f"{differs}: another name of the same one ({our_identity})")
    return fail(check, f"{differs}: theirs has {their_identity}; ours has {our_identity}", lift)


def check_rights(settings: Settings, metadata: ZooKeeperStore) -> Iterator[Finding]:
    """What everybody may do to the nodes that publishing and releasing change; we send no
    identity.
    """
    root = settings.metadata.ledgers_root.rstrip("/")
    lacking = [
        (path, "".join(sorted(set(needed) - rights)))
        for path, needed in ((root, "r"), (MANAGED_LEDGERS_ROOT, "r"), *_some_topics(metadata))
        if (rights := metadata.rights_of_anyone(path)) is not None and not rights >= set(needed)
    ]
    for path, letters in lacking:
        words = " and ".join(_NEEDED[letter] for letter in letters)
        yield fail(
            "metadata rights",
            f"{path}: its ACL does not give everybody {words}",
            f"as one who may: getAcl {path}, then setAcl {path} with world:anyone:{letters} added",
        )
    if not lacking:
        yield ok("metadata rights", "the ACLs looked at let us read and write")


def _some_topics(metadata: ZooKeeperStore) -> Iterator[tuple[str, str]]:
    """One topic's node of each namespace, which publishing writes."""
    for tenant in metadata.children(MANAGED_LEDGERS_ROOT):
        for namespace in metadata.children(f"{MANAGED_LEDGERS_ROOT}/{tenant}"):
            path = f"{MANAGED_LEDGERS_ROOT}/{tenant}/{namespace}/persistent"
            topics = [name for name in metadata.children(path) if not name.startswith("__")]
            if topics:
                yield f"{path}/{topics[0]}", "rw"


def _as_zookeeper(theirs: str) -> str:
    """`zookeeperServers` has no scheme; a BookKeeper service URI has `zk+hierarchical` or the
    like.
    """
    text = theirs.removeprefix("metadata-store:")
    scheme, found, rest = text.partition("://")
    if found and scheme.startswith("zk+"):
        return f"zk:{rest}"
    first = text.partition(":")[0]
    known = first in ("zk", "oxia", "etcd", "rocksdb", "memory")
    return text if known else f"zk:{text}"
