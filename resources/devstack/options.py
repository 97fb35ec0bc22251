"""What a caller may choose about a local stack. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tiering_assets.resources.devstack.artifacts import DISTRIBUTIONS, PULSAR_VERSION
from tiering_assets.resources.errors import SettingsError

MIB = 1024 * 1024
# Of what starts soon and ends soon: the first of Java's two compilers, and no look at each class.
# They are of jars whose digests were checked.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Which servers run and how. The defaults suit tests and the demo.

    `broker_deletion_lag_ms`: how long after publication the broker itself deletes a bookie copy;
    None leaves the line out, which is 4 h. A month is longer than any stack lives.
    `auto_offload_bytes` -1 means that the broker offloads only when asked. `broker_conf` and
    `bookie_conf` override any line of every broker's and bookie's file; None removes the line;
    `{server}` in a bookie's value is its server's name. `one_broker_conf` is for one broker alone,
    by its name (broker, broker2, …), and overrides those. `short_lived` servers start sooner and do
    less in an hour: who measures what a broker can do wants others. `ports` fixes ports by name,
    see port_names; all others are chosen free.
    """

    bookies: int = 3
    with_broker: bool = True
    brokers: int = 1
    pulsar_version: str = PULSAR_VERSION
    cluster: str = "local"
    bucket: str = "tierkeeper"
    region: str = "us-east-1"
    block_bytes: int = 5 * MIB
    broker_deletion_lag_ms: int | None = 30 * 24 * 3600 * 1000
    auto_offload_bytes: int = -1
    ledger_entries_max: int = 2000
    ledger_megabytes_max: int = 32
    broker_conf: Mapping[str, str | None] = field(default_factory=dict)
    one_broker_conf: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    zookeeper_mb: int = 128  # of Java's heap; 100,000 topics with ten ledgers each need 2000
    bookie_conf: Mapping[str, str | None] = field(default_factory=dict)
    short_lived: bool = False
    ports: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bookies < 0 or (self.with_broker and self.bookies == 0):
            raise SettingsError(f"a broker needs at least one bookie, got {self.bookies}")
        if self.brokers < 1:
            raise SettingsError(f"brokers is {self.brokers}; with_broker=False means none")
        if self.pulsar_version not in DISTRIBUTIONS:
            raise SettingsError(
                f"Pulsar {self.pulsar_version} is not pinned; known: {', '.join(DISTRIBUTIONS)}"
            )
        strangers = sorted(set(self.one_broker_conf) - set(self.broker_names()))
        if strangers:
            raise SettingsError(f"one_broker_conf names {', '.join(strangers)}, no such broker")
        if self.block_bytes < 5 * MIB:
            raise SettingsError(
                f"block_bytes is {self.block_bytes}, the smallest part of an upload is {5 * MIB}"
            )
        unknown = sorted(set(self.ports) - set(self.port_names()))
        if unknown:
            raise SettingsError(
                f"no port is called {', '.join(unknown)}; known: {', '.join(self.port_names())}"
            )

    def server_names(self) -> tuple[str, ...]:
        """Return the servers in the order in which they start."""
        bookies = tuple(f"bookie{number}" for number in range(1, self.bookies + 1))
        return ("s3", "zookeeper", *bookies, *self.broker_names())

    def broker_names(self) -> tuple[str, ...]:
        """Return the brokers: broker, broker2, …; none without brokers."""
        if not self.with_broker:
            return ()
        return ("broker", *(f"broker{number}" for number in range(2, self.brokers + 1)))

    def port_names(self) -> tuple[str, ...]:
        """Return the name of every port of this stack."""
        bookies = [
            name
            for number in range(1, self.bookies + 1)
            for name in (f"bookie{number}", f"bookie{number}.http")
        ]
        # Named without a broker, too: BookKeeper's cluster metadata wants the broker's URLs.
        brokers = [n for name in self.broker_names() or ("broker",) for n in (name, f"{name}.web")]
        return ("zookeeper", *bookies, *brokers, "s3.metrics", *S3_PORT_NAMES)


# Each of these opens its number + 10000 (gRPC) as well.
S3_PORT_NAMES = ("s3", "s3.master", "s3.volume", "s3.filer", "s3.admin")
