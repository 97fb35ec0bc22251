"""`ledger why` and `topic backlog` on real servers, and the backlog asset's counts beside them."""

import json

import dagster as dg
import pytest

from tests.support.cli_shell import Shell
from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tiering_assets.defs.explain.rollups import backlog_metadata
from tiering_assets.explain.backlog import counted, explain_backlog
from tiering_assets.explain.figures.count_figures import count_figures
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.resources.devstack.traffic import TopicSpec, produce

pytestmark = pytest.mark.stack

ROLLOVER = 2000  # entries; the stack's ledger_entries_max
NAMESPACE = "public/backlog"
SPEC = TopicSpec(topic=f"{NAMESPACE}/orders", messages=2 * ROLLOVER + 10, payload_bytes=64)


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    """Runs where a tiering.toml wants everything that is closed."""
    directory = tmp_path_factory.mktemp("backlog")
    (directory / "tiering.toml").write_text("[default]\noffloadSizeInMB = 0\n")
    return Shell(stack, directory)


@pytest.fixture(scope="module")
def sealed(cluster):
    """Ids of two closed ledgers and the open one."""
    cluster.make_namespace(NAMESPACE)
    produce(cluster.endpoints, SPEC)
    wait_until(lambda: len(cluster.ledger_ids(SPEC, "sealed")) == 2, "two ledgers are closed")
    return [*cluster.ledger_ids(SPEC, "sealed"), *cluster.ledger_ids(SPEC, "open")]


def why(shell, ledger_id, **changes):
    document = shell.document("ledger", "why", ledger_id, **changes)
    return document["reason"], document["detail"]


def counts(document):
    return {row["reason"]: row["ledgers"] for row in document["reasons"]}


def test_a_ledger_has_one_reason_from_sealed_to_done(cluster, shell, sealed):
    first, second, open_id = sealed
    assert why(shell, open_id)[0] == "open"
    assert why(shell, first)[0] == "not admitted"
    plain = shell("ledger", "why", first).stdout
    assert plain.startswith(f"ledger {first}: not admitted: ")

    [outcome] = cluster.offload([first])
    assert outcome.published is not None
    day = {"TIERKEEPER_RELEASE_DELETION_LAG_S": "86400"}
    reason, detail = why(shell, first, **day)
    assert (reason, detail.split()[:2]) == ("in lag", ["due", "after"])
    shell("hold", "set", first, "--reason", "audit")
    assert why(shell, first)[0] == "held"
    shell("hold", "lift", first, "--reason", "done", "--execute")
    cluster.release(SPEC, [first])
    assert why(shell, first)[0] == "done"

    named = shell.document("topic", "backlog", SPEC.topic)
    assert counts(named)["done"] == 1
    assert counts(named)["not admitted"] >= 1  # the reload closed one more
    [topic] = named["topics"]
    assert topic["topic"] == f"persistent://{SPEC.topic}"
    assert topic["reasons"] == named["reasons"]
    assert named["ledgers"] == sum(counts(named).values()) >= 3
    assert why(shell, second)[0] == "not admitted"


def test_what_a_topics_own_policy_says_is_asked_only_for_named_topics(cluster, shell, sealed):
    _first, second, _open = sealed
    path = f"/persistent/{SPEC.topic}/offloadPolicies"
    body = {
        "managedLedgerOffloadDriver": "aws-s3",
        "s3ManagedLedgerOffloadBucket": cluster.endpoints.s3_bucket,
        "s3ManagedLedgerOffloadRegion": cluster.endpoints.s3_region,
        "s3ManagedLedgerOffloadServiceEndpoint": cluster.endpoints.s3_endpoint,
        "managedLedgerOffloadThresholdInBytes": 2**40,
    }
    cluster.admin("POST", path, json.dumps(body).encode())
    wait_until(lambda: cluster.admin("GET", path), "the policy has come through its topic")
    assert why(shell, second)[0] == "below threshold"
    cluster.admin("DELETE", path)


def test_the_fleets_counts_add_up_and_are_the_assets(cluster, shell):
    document = shell.document("topic", "backlog")
    listed = shell.document("ledger", "list")["ledgers"]
    assert sum(counts(document).values()) == document["ledgers"] == len(listed)
    assert set(counts(document)) <= {reason.value for reason in BacklogReason}
    explained = list(explain_backlog(cluster.steps, ml_names(SPEC)))
    figures = count_figures(
        map(counted, explained), disturbances_last_hour=0, now=cluster.steps.now()
    )
    table = backlog_metadata(figures)["by_reason"]
    assert isinstance(table, dg.TableMetadataValue)
    told = {row.data["reason"]: row.data["ledgers"] for row in table.records}
    assert sum(n for n in told.values() if isinstance(n, int)) == len(explained) >= 3
    assert told["done"] == 1


def test_an_unknown_ledger_is_an_error(shell):
    said = shell("ledger", "why", 2**40, code=17).stderr
    assert "no topic lists it" in said
