"""Rates as servers see them: two runs at once under small budgets, and a change in the middle."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from tests.support.fault_lab import certificate_of
from tests.support.offload_policies import MIB
from tests.support.redirected import Redirected
from tests.support.wiretap import Seen, Wiretap, most_in
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.look.brakes.budget import set_budget
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.rate_budget import NAMES

pytestmark = [pytest.mark.stack, pytest.mark.fault]

PARTS = 4  # two runs, each a driver and one task
SLOW = {
    "upload_bytes_per_s": MIB,
    "bookie_read_bytes_per_s": 8 * MIB,
    "store_requests_per_s": 40,
}
WINDOW_S = 10


@dataclass(frozen=True)
class Run:
    """One run of the product, with wiretaps of its own between it and all servers."""

    settings: Settings
    store: Wiretap
    bookies: dict[str, Wiretap]

    def offload(self, lab, ledger_id):
        with lab.open(self.settings) as plain:
            root = plain.settings.metadata.ledgers_root
            tapped = replace(plain, ledgers=Redirected(plain.metadata, root, self.bookies))
            [outcome] = offload_batch(tapped, [ledger_id], publish=False)
            return certificate_of(outcome)

    def read(self) -> list[Seen]:
        return [seen for tap in self.bookies.values() for seen in tap.answered]

    def data(self) -> list[Seen]:
        """What its task sent: the data objects, by parts or whole."""
        return [
            seen
            for seen in self.store.sent
            if seen.what.startswith("PUT ")
            and "-ledger-" in seen.what
            and "-index" not in seen.what
        ]


@pytest.fixture
def runs(lab):
    shared = lab.with_section("budget", runs_max=2)
    shared = replace(shared, spark=replace(shared.spark, master="local[1,4]"))
    endpoint = urlsplit(lab.endpoints.s3_endpoint)
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            store = stack.enter_context(Wiretap((endpoint.hostname, endpoint.port)))
            found.append(
                Run(
                    settings=replace(shared, store=replace(shared.store, endpoint=store.url)),
                    store=store,
                    bookies={
                        bookie: stack.enter_context(Wiretap(address))
                        for bookie, address in lab.endpoints.bookies.items()
                    },
                )
            )
        yield found


@pytest.fixture
def budget(lab, runs):
    """Set budgets as an operator does; settings alone speak again after the test."""

    def change(**rates):
        with lab.open(replace(runs[0].settings, store=lab.settings.store)) as stack:
            set_budget(stack, rates, author="test")

    yield change
    change(**dict.fromkeys(NAMES))


def test_no_ten_seconds_exceed_a_budget_that_changes_while_two_runs_copy(lab, runs, budget):
    namespace = lab.namespace("budgets")
    small = [lab.topic(namespace, messages=2, payload_bytes=700 * 1024) for _ in runs]
    large = [lab.multi_block_topic(namespace) for _ in runs]
    budget(**SLOW)
    second = [threading.Event() for _ in runs]

    def copy(number):
        """Two spenders, one after the other in the same place."""
        runs[number].offload(lab, small[number].ledger_id)
        second[number].set()
        return runs[number].offload(lab, large[number].ledger_id)

    with ThreadPoolExecutor(2) as pool:
        copies = [pool.submit(copy, number) for number in range(2)]
        assert all(event.wait(60) for event in second)
        time.sleep(WINDOW_S + 5)
        changed_at = time.monotonic()
        assert not any(copied.done() for copied in copies)
        before = [sum(seen.size for seen in run.data()) for run in runs]
        budget(upload_bytes_per_s=64 * MIB)
        certificates = [copied.result(60) for copied in copies]

    assert [len(certificate.blocks) for certificate in certificates] == [2, 2]
    part = WINDOW_S * SLOW["upload_bytes_per_s"] / PARTS
    for run, sent in zip(runs, before, strict=True):
        slow = [seen for seen in run.data() if seen.when <= changed_at]
        assert most_in(slow) <= part
        assert most_in(slow) >= part / 2  # it was the budget that slowed it
        whole = 2 * 700 * 1024 + 7 * 900 * 1024
        assert sent < whole <= sum(seen.size for seen in run.data())
        left_s = (whole - sent) * PARTS / SLOW["upload_bytes_per_s"]
        took_s = run.data()[-1].when - changed_at
        assert took_s < min(left_s, WINDOW_S + 5)  # looked at again within 10 s, without a restart
    everything = [seen for run in runs for seen in run.store.sent]
    slowly = [seen for seen in everything if seen.when <= changed_at]
    assert most_in(slowly) <= WINDOW_S * SLOW["upload_bytes_per_s"]
    assert most_in(everything) <= WINDOW_S * 64 * MIB
    read = [seen for run in runs for seen in run.read()]
    assert sum(seen.size for seen in read) > 2 * 7 * 900 * 1024
    assert most_in(read) <= WINDOW_S * SLOW["bookie_read_bytes_per_s"]
    for run in runs:
        assert most_in(run.read()) <= 2 * WINDOW_S * SLOW["bookie_read_bytes_per_s"] / PARTS
        assert most_in(run.store.requests) <= 2 * WINDOW_S * SLOW["store_requests_per_s"] / PARTS
    requests = [seen for run in runs for seen in run.store.requests]
    assert most_in(requests) <= WINDOW_S * SLOW["store_requests_per_s"]
