"""Doctor's questions about ZooKeeper, the bookies and the broker, each by itself."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Sequence

from tiering_assets.ground.finding import Finding, fail, ok, warn
from tiering_assets.look.topic.publish_gate import (
    SKIP_SETTING,
    STOP_SKIPPING,
    BrokerSeen,
    broker_seen,
    names,
    without_driver,
)
from tiering_assets.resources.bookkeeper.address_map import AddressMap
from tiering_assets.resources.bookkeeper.admin import BookieAdmin
from tiering_assets.resources.bookkeeper.figures_page import read_add_latency
from tiering_assets.resources.errors import BookieError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.pulsar.admin import BrokerAdmin
from tiering_assets.resources.settings import Settings

LOOKED_AT_MAX = 500


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
    yield from check_absent(ledgers, {*registered})
    if bookies.readonly:
        yield warn("bookies", f"read-only: {', '.join(bookies.readonly)}", "look at their disks")
    timeout_s = settings.bookies.connect_timeout_s
    ways = AddressMap.parse(settings.bookies.address_map)
    for known in ledgers.registrations():
        bookie, address = known.bookie_id, known.rpc
        try:
            socket.create_connection(ways.dialled(address), timeout=timeout_s).close()
        except OSError as error:
            yield fail(
                f"bookie {bookie}",
                f"registered, but {ways.told(address)} does not accept a connection ({error})",
                "open the network from here to the bookies, or set bookies.address_map",
            )
            continue
        yield _bookie_http(bookie, known.http and ways.dialled(known.http), timeout_s)
        if settings.budget.add_latency_max_s:
            page = known.page(settings.bookies.http_port)
            yield _add_latency(bookie, page and ways.dialled(page), settings)


def _add_latency(bookie: str, page: tuple[str, int] | None, settings: Settings) -> Finding:
    """Whether reads of it can be polite; without its figures they are paced by budgets alone."""
    check = f"adds of {bookie}"
    bound_s = settings.budget.add_latency_max_s
    alone = "reads from it are paced by budgets alone"
    if page is None:
        return warn(
            check,
            f"it registers no HTTP server: how long its adds take is unknown, and {alone}",
            "httpServerEnabled=true in bookkeeper.conf, or set bookies.http_port",
        )
    try:
        seen = read_add_latency(page, timeout_s=settings.bookies.connect_timeout_s)
    except BookieError as error:
        return warn(
            check,
            f"how long they take is unknown, and {alone}: {error}",
            "open the network from here and from workers to its HTTP server, set "
            "bookies.http_port, or leave statsProviderClass in bookkeeper.conf as it is shipped",
        )
    if seen.p99_s is None:
        return ok(check, "none in the last minute; reads are slowed when they are slow")
    slowed = "reads from it are slowed" if seen.p99_s > bound_s else "reads are not slowed"
    return ok(
        check,
        f"p99 {seen.p99_s * 1000:.1f} ms, budget.add_latency_max_s {bound_s * 1000:g} ms: {slowed}",
    )


def check_absent(ledgers: LedgerDirectory, registered: set[str]) -> Iterator[Finding]:
    """Bookies that started here once, or hold ledgers, and are not there. Reads LOOKED_AT_MAX
    ledgers.
    """
    cookies = {*ledgers.known_bookies()} - registered
    ids = ledgers.list_ledger_ids()
    sample = ids[:: max(1, -(-len(ids) // LOOKED_AT_MAX))]
    holding: Counter[str] = Counter()
    for node in map(ledgers.read, sample):
        if node is not None:
            holding.update({b for s in node.metadata.segments for b in s.bookies} - registered)
    for bookie in sorted(cookies | {*holding}):
        what = [f"in the ensembles of {holding[bookie]} of {len(sample)} ledgers looked at"]
        what = what if holding[bookie] else []
        if bookie in cookies:
            what.insert(0, "it has a cookie")
        yield fail(
            f"bookie {bookie}",
            f"not registered, and known: {', '.join(what)}. While bookies are short no topic is "
            f"reloaded, and so none published or released",
            "start it; one that is gone for good is decommissioned: bookkeeper shell "
            f"decommissionbookie -bookieid {bookie}",
        )


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
    seen = [broker_seen(name, found) for name, found in sorted(broker.runtime_configs().items())]
    yield _skipping(seen)
    driver = settings.offload.driver
    if blind := without_driver(seen, driver):
        yield warn(
            "offload driver",
            f"not {driver!r} at {names(blind)}: publish and release refuse every topic whose "
            f"namespace has no offload policy of its own, as it may move there",
            "configure the offloader of every broker",
        )
    else:
        yield ok("offload driver", f"{driver!r} at every live broker")


def _skipping(seen: Sequence[BrokerSeen]) -> Finding:
    careless = [broker for broker in seen if broker.skips]
    silent = [broker for broker in seen if broker.skips is None]
    if careless:
        return fail(
            SKIP_SETTING,
            f"true at {names(careless)}: after a passing read failure a broker skips a whole ledger; "
            f"publish and release refuse",
            STOP_SKIPPING,
        )
    if silent:
        return warn(
            SKIP_SETTING,
            f"expected true or false, unknown at {names(silent)}; publish and release refuse what "
            f"is unknown",
            "ask for permission to read the brokers' runtime configuration",
        )
    return ok(SKIP_SETTING, "false at every live broker")
