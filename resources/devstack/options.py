"""What a caller may choose about a local stack. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resources.errors import SettingsError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Which servers run and how. The defaults suit tests and the demo.

    `broker_deletion_lag_ms`: how long after publication the broker itself deletes a bookie copy; None
    leaves the line out, which is 4 h. A month is longer than any stack lives.
    `auto_offload_bytes` -1 means that the broker offloads only when asked.
    `broker_conf` overrides any line of broker.conf; None removes the line.
    `ports` fixes ports by name (see port_names); all others are chosen free.
    """

    bookies: int = 3
    with_broker: bool = True
    cluster: str = "local"
    bucket: str = "tierkeeper"
    region: str = "us-east-1"
    block_bytes: int = 5 * MIB
    broker_deletion_lag_ms: int | None = 30 * 24 * 3600 * 1000
    auto_offload_bytes: int = -1
    ledger_entries_max: int = 2000
    ledger_megabytes_max: int = 32
    broker_conf: Mapping[str, str | None] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bookies < 0 or (self.with_broker and self.bookies == 0):
            raise SettingsError(f"a broker needs at least one bookie, got {self.bookies}")
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
        return ("s3", "zookeeper", *bookies, *(("broker",) if self.with_broker else ()))

    def port_names(self) -> tuple[str, ...]:
        """Return the name of every port of this stack."""
        bookies = [
            name
            for number in range(1, self.bookies + 1)
            for name in (f"bookie{number}", f"bookie{number}.http")
        ]
        # Named without a broker, too: BookKeeper's cluster metadata wants the broker's URLs.
        return ("zookeeper", *bookies, "broker", "broker.web", *S3_PORT_NAMES)


# Each of these opens its number + 10000 (gRPC) as well.
S3_PORT_NAMES = ("s3", "s3.master", "s3.volume", "s3.filer", "s3.admin")
