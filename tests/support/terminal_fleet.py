"""One simulated fleet that has something of everything, for pictures of what commands print.

Owns: clock and ids are the simulation's, so the same fleet is made each time. Copies are published,
released, damaged and held; a topic is paused, one has no threshold, a ledger's bookies are away, a
broker began a copy of its own and left it; and the machine's servers but the bucket do not answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.pulsar_entries import (
    MESSAGES_IN_BATCH,
    PRODUCER_NAME,
    PUBLISH_TIME,
    SEQUENCE_ID,
    encoded,
    entry,
)
from tests.support.same_record import NOWHERE, repeatable
from tests.support.trimmed_cluster import DAY_S, HOUR_S, TOPIC, TrimmedCluster
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.cli.shared.session import Session
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.pauses import pause
from tiering_assets.look.brakes.scopes import ledger_scope, topic_scope
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.pulsar.retention import Retention

LONG = "shop/payments/persistent/settled-by-the-bank-of-the-customer-partition-3"
QUIET = "shop/returns/persistent/parcels"
BUSY = "t/ns/persistent/clicks"
# Two messages in one entry.
BATCH = entry(
    encoded(
        [(PRODUCER_NAME, b"p"), (SEQUENCE_ID, 0), (PUBLISH_TIME, 2**40), (MESSAGES_IN_BATCH, 2)]
    ),
    b"\0\0\0\2\x18\x0ctwelve bytes\0\0\0\2\x18\x0cand as many.",
    checksum=False,
)
NAMES = {"topic": "persistent://t/ns/orders", "long": LONG.replace("/persistent/", "/")}


class TerminalFleet(TrimmedCluster):
    """Of the trimmed cluster's topic one ledger is released, one held and one damaged."""

    def __init__(self) -> None:
        super().__init__()
        unlimited = Retention(minutes=None, megabytes=None)
        self.broker.retention = lambda _topic: unlimited  # type: ignore[attr-defined]
        put = self.site.cluster.metadata.put
        put("/admin/policies/t/ns", b'{"offload_threshold": 9}')
        put("/admin/policies/shop/payments", b'{"offload_threshold": 0}')
        put("/admin/policies/shop/returns", b"{}")
        for ml_name in (LONG, QUIET, BUSY):
            self.broker.create_topic(ml_name)
        first = self.fill(LONG, 3)
        self.batched = first[0]
        self.fill(QUIET, 2)
        self.fill(BUSY, 1)
        assert offload_batch(self.stack, first[:2])
        self.later(2 * HOUR_S)
        self.sealed = self.fill(TOPIC, 2)
        self.fill(LONG, 1)
        self.open = int(self.broker.load(TOPIC).open_id)
        self.damage(2)
        hold(self.stack, ledger_scope(1), reason="audit of 2026", author="ops@example.com")
        pause(
            self.stack,
            topic_scope("t/ns/clicks"),
            TieringMode.PAUSED,
            reason="migration",
            author="ops@example.com",
        )
        self.away = first[2]
        del self.site.cluster.bookies[self.away]
        offload_batch(self.stack, [self.away])
        self.later(DAY_S)
        self.clicks = self.fill(BUSY, 1)[0]

    def fill(self, ml_name: str, ledgers: int) -> list[int]:
        """Ledgers that are closed, an hour after each other."""
        ids = []
        for _ in range(ledgers):
            self.broker.produce(ml_name, [b"first", BATCH, b"last"])
            ids.append(int(self.broker.load(ml_name).open_id))
            self.broker.roll_over(ml_name)
            self.later(HOUR_S)
        return ids

    def damage(self, ledger_id: int) -> None:
        """One byte of its published copy is another."""
        key = data_key(self.uid(ledger_id), ledger_id)
        [body, _metadata] = self.world.objects.peek(key)  # type: ignore[misc]
        self.world.objects.rot(key, body[:150] + bytes([body[150] ^ 1]) + body[151:])

    def uid(self, ledger_id: int) -> Any:
        found = self.stack.topics.read(TOPIC)
        assert found is not None
        listed = found[0].ledger(ledger_id)
        assert listed is not None
        assert listed.offload is not None
        return listed.offload.uid

    @property
    def words(self) -> Mapping[str, object]:
        """What lines of the story name."""
        return NAMES | {
            "sealed": self.sealed[0],
            "next": self.sealed[1],
            "open": self.open,
            "away": self.away,
            "paused": self.clicks,
            "batched": self.batched,
            "key": data_key(self.uid(2), 2),
        }

    @contextmanager
    def served(self, folder: Path) -> Iterator[None]:
        """Commands of this process find this fleet, from an empty folder."""

        @contextmanager
        def opened(session: Any, *_runner: Any, **_how: Any) -> Iterator[Stack]:
            told = getattr(session, "progress", self.stack.narrate)
            yield replace(self.stack, narrate=told)

        def bucket(*_given: Any, **_how: Any) -> Any:
            return self.stack.objects

        def away(address: str, **_how: Any) -> Any:
            raise MetadataError(
                f"no connection to ZooKeeper {address} within 1.0 s: check metadata.store (hosts and "
                f"port) and that a server runs there"
            )

        class Clock(datetime):
            @classmethod
            def now(cls, _zone: tzinfo | None = None) -> Any:
                return self.stack.objects.server_time()

        (folder / "tierkeeper.toml").write_text(NOWHERE)
        (folder / "dagster").mkdir()
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DAGSTER_HOME": str(folder / "dagster"),
        }
        with ExitStack() as exits:
            for made in (
                repeatable(),
                chdir(folder),
                patch.dict(os.environ, own, clear=True),
                patch.object(Session, "stack", opened),
                patch("tiering_assets.resources.object_store.s3.S3ObjectStore", bucket),
                patch("tiering_assets.audit.audit.S3ObjectStore", bucket),
                patch("tiering_assets.audit.scan.object_scan.open_stack", opened),
                patch("tiering_assets.doctor.doctor.S3ObjectStore", bucket),
                patch("tiering_assets.doctor.doctor.ZooKeeperStore", away),
                patch("tiering_assets.doctor.bucket.datetime", Clock),
                patch("tiering_assets.doctor.machine.platform.python_version", lambda: "3.11.0"),
                patch("tiering_assets.doctor.machine.require_java", lambda: "/usr/bin/java"),
                patch("tiering_assets.doctor.machine.name_problem", lambda: ""),
                patch("tiering_assets.doctor.machine.version", lambda _package: "1.0"),
                patch("tiering_assets.resources.kept_files.user_cache", lambda: folder / "cache"),
            ):
                exits.enter_context(made)
            yield
