"""The topics of cold_lab.py in a bucket of a real store, posted to real tables, behind a proxy.

Owns: `unkept` topics lie there since before the bucket kept versions, all others since then. What
the proxy answers in the store's place is `alter`'s to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import boto3
import pytest

from tests.support.altered_answers import Alter, AlteringProxy
from tests.support.cold_fault_entries import TOPIC_FAULTS, TopicFault
from tests.support.cold_lab import ASKED, put_topics
from tests.support.pulsar_entries import message
from tests.support.tiered_cluster import TieredCluster, post_all, tables_apart, tiered_cluster
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.settings import Settings

LONG_S = 1800  # of a proof, which no run waits for
MARKS = [pytest.mark.stack, pytest.mark.spark, pytest.mark.cold_faults, pytest.mark.timeout(LONG_S)]
TIME = 1_795_247_080_670
_PLAIN = [message(TIME + n, payload=b"%d" % n * 30) for n in range(8)]


def made(name: str, entries: Sequence[bytes] = _PLAIN) -> TopicFault:
    """Sound messages, a few of them in a block, whose payloads are not compared."""
    return TopicFault(
        name=name, ledgers=[entries], rows={(0, n, -1): b"" for n in range(len(entries))}
    )


KEPT = tuple(made(f"kept-{n}") for n in range(2))
UNKEPT = tuple(made(f"unkept-{n}") for n in range(4))
LONG = made("long", [message(TIME + n, payload=b"%d " % n * 90) for n in range(40)])


@dataclass
class ColdLab:
    """`ids` are ledgers by fault. `settings` are those of a reader, who asks the proxy."""

    cluster: TieredCluster
    proxy: AlteringProxy
    settings: Settings
    root: str
    ids: dict[str, list[int]]

    @property
    def environment(self) -> dict[str, str]:
        return environment_of(self.settings)

    def keys(self, fault: TopicFault) -> list[str]:
        """Data objects of its ledgers."""
        wanted = {f"-ledger-{one}" for one in self.ids[fault.name]}
        every = (one.key for one in self.cluster.steps.objects.list_objects())
        return [key for key in every if any(key.endswith(one) for one in wanted)]

    @contextmanager
    def altered(self, alter: Alter) -> Iterator[None]:
        before, self.proxy.alter = self.proxy.alter, alter
        try:
            yield
        finally:
            self.proxy.alter = before

    def options(self, fault: TopicFault, **more: str) -> Mapping[str, str]:
        """Of the source."""
        return {"topic": fault.topic, "columns": ",".join(ASKED), **fault.options, **more}


@contextmanager
def cold_lab(stack: DevStack, name: str) -> Iterator[ColdLab]:
    root = tables_apart(stack, name)
    with tiered_cluster(stack, catalogue_root=root, bucket=name) as cluster:
        steps, first_id = cluster.steps, 71_000_000 + random.randrange(10**8)
        ids = put_topics(steps.objects, steps.book, first_id=first_id, faults=UNKEPT)
        store = steps.settings.store
        client = boto3.client(
            "s3",
            endpoint_url=store.endpoint,
            aws_access_key_id=store.access_key,
            aws_secret_access_key=store.secret_key,
            region_name=store.region or "us-east-1",
        )
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        kept = (*TOPIC_FAULTS, *KEPT, LONG)
        ids |= put_topics(steps.objects, steps.book, first_id=first_id + 1000, faults=kept)
        post_all(steps)
        with AlteringProxy(store.endpoint, lambda _method, _path, answer: answer) as proxy:
            settings = replace(steps.settings, store=replace(store, endpoint=proxy.url))
            yield ColdLab(cluster, proxy, settings, root, ids)
