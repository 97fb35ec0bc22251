"""Is everything there and right that tierkeeper relies on? One finding per question.

Owns: no question stops the others. A server that does not answer is a failed finding whose text is
the error with its next step, and what needs that server is skipped, not guessed. Writes nothing,
and loads no topic but named ones; the bucket's promises are tried out by bucket_proof.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Final

from tiering_assets.ground.finding import Finding, Level, asked, fail, skip
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin
from tiering_assets.resources.settings import Settings

_NOTHING: Final[Mapping[str, Callable[[Settings], Iterable[Finding]]]] = MappingProxyType({})


def examine(
    settings: Settings,
    *,
    topics: Iterable[str] | None = None,
    more: Mapping[str, Callable[[Settings], Iterable[Finding]]] = _NOTHING,
) -> Iterator[Finding]:
    """Ask everything, in the order in which one thing needs another.

    `topics` are managed-ledger names whose policies to look at; without, one per namespace. `more`
    are questions of other rooms that need every server.
    """
    from tiering_assets.doctor import brokers as doctor_brokers
    from tiering_assets.doctor import bucket as doctor_bucket
    from tiering_assets.doctor import cluster as doctor_cluster
    from tiering_assets.doctor import day_book as doctor_day_book
    from tiering_assets.doctor import machine as doctor_machine
    from tiering_assets.doctor import policies as doctor_policies
    from tiering_assets.doctor import publications as doctor_publications
    from tiering_assets.doctor import records as doctor_records
    from tiering_assets.doctor import signing as doctor_signing
    from tiering_assets.doctor import stores as doctor_stores

    yield from doctor_machine.check_machine()
    yield from doctor_machine.check_cache(settings.cache)
    yield from asked("keys", lambda: doctor_signing.check_keys(settings))
    with ExitStack() as exits:
        metadata = None
        try:
            metadata = ZooKeeperStore(
                settings.metadata.store,
                session_timeout_s=settings.metadata.session_timeout_s,
                connect_timeout_s=settings.metadata.connect_timeout_s,
            )
            exits.callback(metadata.close)
        except TierkeeperError as error:
            yield fail("zookeeper", str(error), "")
            yield skip("bookies", "needs ZooKeeper")
        if metadata is not None:
            ledgers = LedgerDirectory(metadata, settings.metadata.ledgers_root)
            yield from asked("zookeeper", lambda: doctor_cluster.check_metadata(settings, ledgers))
            yield from asked(
                "metadata rights", lambda: doctor_stores.check_rights(settings, metadata)
            )
            yield from asked("bookies", lambda: doctor_cluster.check_bookies(settings, ledgers))
        broker = HttpBrokerAdmin(settings.broker)
        exits.callback(broker.close)
        broker_answers = False
        for finding in asked("broker", lambda: doctor_cluster.check_broker(settings, broker)):
            broker_answers = broker_answers or finding.level is not Level.FAIL
            yield finding
        one_cluster = True
        for finding in doctor_stores.check_addresses(
            settings, broker if broker_answers else None, metadata
        ):
            one_cluster = one_cluster and finding.level is not Level.FAIL
            yield finding
        bucket_answers = False
        if settings.store.bucket:
            objects = S3ObjectStore(settings.store)
            for finding in asked("bucket", lambda: doctor_bucket.check_bucket(settings, objects)):
                bucket_answers = bucket_answers or finding.level is not Level.FAIL
                yield finding
            if not one_cluster:
                yield skip("bucket proofs", "not looked at before all addresses are of one cluster")
            elif bucket_answers and metadata is not None:
                yield from asked("bucket proofs", lambda: doctor_bucket.check_proof(settings))
            else:
                yield skip("bucket proofs", "needs the bucket and ZooKeeper")
        else:
            yield fail("bucket", "store.bucket is not set", "set TIERKEEPER_STORE_BUCKET")
    if metadata is not None and broker_answers and bucket_answers:
        yield from asked(
            "policies",
            lambda: doctor_policies.check_policies(settings, topics),
        )
        yield from asked("brokers seen", lambda: doctor_brokers.check_memory(settings))
        yield from asked("publications", lambda: doctor_publications.check(settings))
        yield from asked("records", lambda: doctor_records.check(settings))
        yield from asked("day book", lambda: doctor_day_book.check(settings))
        for check, ask in more.items():
            yield from asked(check, partial(ask, settings))
    else:
        yield skip("policies", "needs ZooKeeper, the broker and the bucket")
