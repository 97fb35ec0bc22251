"""A real bookie tells how long its adds take, and reads of it slow down while they take long."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.support.tiered_cluster import tiered_cluster, wait_until
from tiering_assets.doctor.cluster import check_bookies
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.resources.bookkeeper.figures_page import read_add_latency
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.tasks.descriptors import BlockTask, TaskKind
from tiering_assets.tasks.polite_share import SHARE_MIN
from tiering_assets.tasks.politeness import Politeness
from tiering_assets.tasks.worker import Worker, run_task

pytestmark = pytest.mark.stack
NO_ADD_IS_SO_FAST_S = 1e-6


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.fixture(scope="module")
def task(cluster):
    """A reading of 20 MB, which every bookie of the ledger's ensemble is asked for."""
    spec = TopicSpec(topic="public/default/polite", messages=200, payload_bytes=100 * 1024)
    cluster.fill(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    plan = plan_ledger(cluster.steps, ledger_id)
    assert isinstance(plan, LedgerPlan)
    return BlockTask(
        kind=TaskKind.READ_SOURCE,
        attempt="polite",
        source=plan.source,
        data_key="none",
        blocks=tuple(plan.blocks),
        topic=plan.ml_name,
    )


def counted(cluster):
    return sum(read_add_latency(page).count for page in cluster.endpoints.bookie_http.values())


def test_a_bookie_counts_what_a_broker_adds_to_it(cluster):
    before = counted(cluster)
    cluster.fill(TopicSpec(topic="public/default/counted", messages=150, payload_bytes=1024))
    wait_until(lambda: counted(cluster) >= before + 2 * 150, "two copies of 150 entries")


def test_a_task_knows_the_pages_that_its_bookies_registered(cluster, task):
    registered = cluster.endpoints.bookie_http
    assert task.source.pages == {bookie: registered[bookie] for bookie in task.source.addresses}


def test_reads_slow_down_to_the_floor_while_adds_are_slow_and_give_the_same(cluster, task):
    settings = cluster.steps.settings
    with Worker(settings) as worker:
        worker.reads.politeness = None
        at_once = [(row.entries_sha256, row.error) for row in run_task(task, worker)]
    spec = TopicSpec(topic="public/default/beside", messages=3000, payload_bytes=1024)
    slept: list[float] = []
    shares: list[float] = []  # at each pause: with looks so close a moment without adds ends one
    with ThreadPoolExecutor(1) as pool, Worker(settings) as worker:
        politeness = Politeness(bound_s=NO_ADD_IS_SO_FAST_S, every_s=0.05)
        worker.reads.politeness = politeness

        def pause(seconds):
            slept.append(seconds)
            shares.append(politeness.share(worker.reads.pages))

        worker.reads._sleep = pause
        adding, rows, until = pool.submit(cluster.fill, spec), [], time.monotonic() + 60
        while time.monotonic() < until and (
            len(slept) <= 3 or min(shares, default=1.0) >= 2 * SHARE_MIN
        ):
            rows.append(list(run_task(task, worker)))
            if adding.done():
                adding.result()
                adding = pool.submit(cluster.fill, spec)
        adding.result()
    assert len(slept) > 3
    assert min(shares) < 2 * SHARE_MIN
    assert [[(row.entries_sha256, row.error) for row in one] for one in rows] == [at_once] * len(
        rows
    )


def test_doctor_tells_the_figure_and_where_it_is_unknown(cluster, closed_port):
    settings, ledgers = cluster.steps.settings, cluster.steps.ledgers

    def told(**bookies):
        asked = replace(settings, bookies=replace(settings.bookies, **bookies))
        return [f for f in check_bookies(asked, ledgers) if f.check.startswith("adds of ")]

    assert [finding.level for finding in told()] == ["ok"] * 3
    unknown = told(http_port=closed_port)
    assert [finding.level for finding in unknown] == ["warn"] * 3
    for finding in unknown:
        assert f"127.0.0.1:{closed_port}/metrics" in finding.text
        assert "paced by budgets alone" in finding.text
