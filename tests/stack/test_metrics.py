"""`tierkeeper metrics` on real servers, scraped over HTTP; sizes are the broker's own."""

import signal
import time

import pytest

from tests.support.cli_shell import Shell
from tests.support.metrics_server import serving
from tests.support.tiered_cluster import PATIENCE_S, tiered_cluster, wait_until
from tiering_assets.resources.devstack.traffic import TopicSpec, produce

pytestmark = pytest.mark.stack

ROLLOVER = 2000  # entries; the stack's ledger_entries_max
NAMESPACE = "public/metrics"
SPEC = TopicSpec(topic=f"{NAMESPACE}/orders", messages=2 * ROLLOVER + 10, payload_bytes=64)
TOPIC = f"persistent://{SPEC.topic}"
LONG_LAG = {"TIERKEEPER_RELEASE_DELETION_LAG_S": "86400"}


@pytest.fixture(scope="module")
def cluster(stack_to_stop):
    with tiered_cluster(stack_to_stop) as connected:
        yield connected


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Commands run where a tiering.toml wants everything that is closed."""
    directory = tmp_path_factory.mktemp("metrics")
    (directory / "tiering.toml").write_text("[default]\noffloadSizeInMB = 0\n")
    return directory


@pytest.fixture(scope="module")
def shell(stack_to_stop, directory):
    return Shell(stack_to_stop, directory)


@pytest.fixture(scope="module")
def two_closed(cluster):
    cluster.make_namespace(NAMESPACE)
    produce(cluster.endpoints, SPEC)
    wait_until(lambda: len(cluster.ledger_ids(SPEC, "sealed")) == 2, "two ledgers are closed")
    return cluster.ledger_ids(SPEC, "sealed")


def sizes(cluster):
    """Bytes of each ledger as the broker tells them, and whether it reads it from the bucket."""
    told = cluster.admin("GET", f"/persistent/{SPEC.topic}/internalStats")["ledgers"]
    return {one["ledgerId"]: (one["size"], one["offloaded"]) for one in told}


def test_a_scrape_follows_a_ledger_from_copy_lag_to_published(
    stack_to_stop, cluster, directory, two_closed
):
    first, second = two_closed
    wanted = {
        "TIERKEEPER_METRICS_TOPICS_MAX": "1000",
        "TIERKEEPER_OBJECTIVES_COPY_LAG_BYTES_MAX": "1",
    }
    with serving(stack_to_stop, directory, LONG_LAG | wanted) as server:
        before = server.survey()
        size = {i: bytes_ for i, (bytes_, _offloaded) in sizes(cluster).items()}
        lag = size[first] + size[second]
        assert lag > 2 * ROLLOVER * 64
        assert before["tierkeeper_copy_lag_bytes", NAMESPACE] == lag
        assert before["tierkeeper_copy_lag_ledgers", NAMESPACE] == 2
        assert before["tierkeeper_topic_copy_lag_bytes", TOPIC] == lag
        assert before["tierkeeper_objective_level", "copy_lag_bytes"] == 2
        assert before["tierkeeper_survey_success",] == 1
        assert 0 <= before["tierkeeper_survey_age_seconds",] < PATIENCE_S

        [outcome] = cluster.offload([first])
        assert outcome.published is not None
        after = server.survey()
        told = sizes(cluster)  # the reload closed the ledger that was open
        assert [i for i, (_bytes, offloaded) in told.items() if offloaded] == [first]
        closed = [i for i in cluster.ledger_ids(SPEC, "sealed") if i != first]
        assert second in closed
        assert after["tierkeeper_copy_lag_bytes", NAMESPACE] == sum(told[i][0] for i in closed)
        assert after["tierkeeper_copy_lag_ledgers", NAMESPACE] == len(closed)
        assert after["tierkeeper_delete_lag_bytes", NAMESPACE] == 0
        assert after["tierkeeper_ledgers", "in lag"] == before["tierkeeper_ledgers", "in lag"] + 1
        assert after["tierkeeper_verified_ratio",] > 0
        age = after["tierkeeper_copy_lag_oldest_seconds", NAMESPACE]
        assert age > before["tierkeeper_copy_lag_oldest_seconds", NAMESPACE] > 0
        assert server.stop(signal.SIGTERM) == 0


def test_what_is_due_is_delete_lag(cluster, shell, two_closed):
    first, _second = two_closed
    time.sleep(2.2)  # more than a lag of 1 s by a clock of whole seconds
    figures = shell.document("metrics", "print", TIERKEEPER_RELEASE_DELETION_LAG_S="1")["figures"]
    lag = figures["topics"][TOPIC]["delete_lag"]
    assert (lag["ledgers"], lag["bytes"]) == (1, sizes(cluster)[first][0])
    assert 0 < lag["oldest_s"] < PATIENCE_S
    text = shell("metrics", "print", TIERKEEPER_RELEASE_DELETION_LAG_S="1").stdout
    assert f'tierkeeper_delete_lag_ledgers{{namespace="{NAMESPACE}"}} 1.0' in text


def test_while_the_store_is_away_old_figures_are_marked_as_old(
    stack_to_stop, directory, two_closed
):
    with serving(
        stack_to_stop, directory, LONG_LAG | {"TIERKEEPER_STORE_ATTEMPTS_MAX": "1"}
    ) as server:
        good = server.survey()
        stack_to_stop.stop_server("s3")
        try:
            bad = server.survey(good=False)
            assert bad["tierkeeper_survey_success",] == 0
            stamp = ("tierkeeper_survey_timestamp_seconds",)
            assert bad[stamp] >= good[stamp]
            later = server.scrape()
            assert later["tierkeeper_survey_age_seconds",] > bad["tierkeeper_survey_age_seconds",]
            assert later[stamp] == bad[stamp]
            copy_lag = ("tierkeeper_copy_lag_bytes", NAMESPACE)
            assert later[copy_lag] == good[copy_lag] > 0
        finally:
            stack_to_stop.start_server("s3")
        assert server.survey()["tierkeeper_survey_success",] == 1
        assert server.stop(signal.SIGINT) == 0
