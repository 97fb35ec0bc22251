"""Doctor's questions about ZooKeeper, the bookies and the broker, and whether they belong together."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from resources.bookkeeper.admin import BookieAdmin
from resources.errors import BookieError, SettingsError
from resources.metastore.ledgers import LedgerDirectory
from resources.metastore.store import MetadataStore
from resources.metastore.store_uri import parse_store_uri
from resources.pulsar.admin import BrokerAdmin
from resources.settings import Settings
from tiering_assets.steps.doctor import Finding, fail, ok, warn

_BROKERS_PATH = "/loadbalance/brokers"
_STORE_SETTINGS = ("metadataStoreUrl", "zookeeperServers")
_CONFIGURATION_SETTINGS = ("configurationMetadataStoreUrl", "configurationStoreServers")


def check_metadata(settings: Settings, ledgers: LedgerDirectory) -> Iterator[Finding]:
    yield ok(
        "zookeeper",
        f"{settings.metadata.store}: BookKeeper instance {ledgers.instance_id()}, layout "
        f"{ledgers.layout.name.lower()}",
    )


def check_bookies(settings: Settings, ledgers: LedgerDirectory) -> Iterator[Finding]:
    bookies = ledgers.available_bookies()
    registered = (*bookies.writable, *bookies.readonly)
    if not registered:
        yield fail("bookies", "no bookie is registered", "start the bookies, or check ledgers_root")
        return
    yield ok(
        "bookies", f"{len(bookies.writable)} writable, {len(bookies.readonly)} read-only registered"
    )
    if bookies.readonly:
        yield warn("bookies", f"read-only: {', '.join(bookies.readonly)}", "look at their disks")
    timeout_s = settings.bookies.connect_timeout_s
    for bookie, (host, port) in ledgers.bookie_addresses().items():
        try:
            socket.create_connection((host, port), timeout=timeout_s).close()
        except OSError as error:
            yield fail(
                f"bookie {bookie}",
                f"registered, but {host}:{port} does not accept a connection ({error})",
                "open the network from here to the bookies",
            )
            continue
        yield _bookie_http(bookie, ledgers.http_endpoint(bookie), timeout_s)


def _bookie_http(bookie: str, http: tuple[str, int] | None, timeout_s: float) -> Finding:
    """The admin API is used to watch garbage collection alone: without it there is a warning."""
    check = f"bookie {bookie}"
    enable = "httpServerEnabled=true in bookkeeper.conf lets us watch garbage collection"
    if http is None:
        return warn(check, "accepts connections; it has no admin HTTP server", enable)
    host, port = http
    try:
        with BookieAdmin(f"http://{host}:{port}", timeout_s=timeout_s) as admin:
            state = admin.state()
    except BookieError as error:
        return warn(check, f"accepts connections; {error}", enable)
    if not state.running or state.shutting_down:
        return warn(check, "accepts connections; says that it is not running", "look at its log")
    return ok(check, f"accepts connections, admin HTTP on port {port}")


def check_broker(settings: Settings, broker: BrokerAdmin) -> Iterator[Finding]:
    config = broker.runtime_config()
    brokers = broker.list_brokers()
    yield ok(
        "broker",
        f"{settings.broker.admin_url}: Pulsar {broker.version()}, "
        f"cluster {config.get('clusterName', 'without a name')}, "
        f"{len(brokers)} live: {', '.join(brokers)}",
    )
    said = config.get("autoSkipNonRecoverableData", "").lower()
    if said == "false":
        yield ok("autoSkipNonRecoverableData", "false")
    elif said == "true":
        yield fail(
            "autoSkipNonRecoverableData",
            "true: after a passing read failure the broker skips a whole ledger; release refuses",
            "pulsar-admin brokers update-dynamic-config --config autoSkipNonRecoverableData "
            "--value false",
        )
    else:
        yield warn(
            "autoSkipNonRecoverableData",
            f"expected true or false, the broker says {said!r}; release refuses what is unknown",
            "ask for permission to read the broker's runtime configuration",
        )


def check_stores(
    settings: Settings, broker: BrokerAdmin, metadata: MetadataStore | None
) -> Iterator[Finding]:
    """The broker must keep its metadata where we look, or we would publish into the void."""
    config = broker.runtime_config()
    ours = settings.metadata.store
    for check, names in (
        ("broker metadata", _STORE_SETTINGS),
        ("broker configuration store", _CONFIGURATION_SETTINGS),
    ):
        name = next((name for name in names if config.get(name)), None)
        if name is None:
            if names is _STORE_SETTINGS:
                yield warn(check, f"the broker names none: {' or '.join(names)}", "compare by hand")
            continue
        if _same_store(config[name], ours):
            yield ok(check, f"{name}={config[name]} is metadata.store")
        else:
            yield fail(
                check,
                f"{name} of the broker is {config[name]}, metadata.store is {ours}",
                f"set metadata.store to {config[name]} (TIERKEEPER_METADATA_STORE), or "
                f"broker.admin_url to a broker of this cluster",
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


def _same_store(theirs: str, ours: str) -> bool:
    """Equal hosts in any order and equal chroot; `zookeeperServers` has no scheme."""
    text = theirs.removeprefix("metadata-store:")
    try:
        found = parse_store_uri(text if text.startswith("zk:") else f"zk:{text}")
        mine = parse_store_uri(ours)
    except SettingsError:
        return False
    return (set(found.hosts), found.chroot) == (set(mine.hosts), mine.chroot)
