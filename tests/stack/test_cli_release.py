"""Holds, written plans, shared reloads and clean-up by the real command against the real
servers.
"""

import json
from uuid import uuid4

import pytest

from tests.support.cli_shell import Shell
from tests.support.fault_lab import Lab
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.look.brakes import holds
from tiering_assets.look.brakes.brake import HOLD, list_brakes
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.devstack.traffic import produce
from tiering_assets.resources.errors import FormatError, LedgerNotFoundError, RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.slow]

DUE = {"TIERKEEPER_RELEASE_DELETION_LAG_S": "0.001"}
YOUNG = {"TIERKEEPER_RELEASE_GUARD_AGE_S": "0.001"}
BEYOND = ("by itself", "retention", "truncate", "deleting the topic")  # what no hold stops
WHO = ("--reason", "audit 17", "--author", "ops")


@pytest.fixture(scope="module")
def tierkeeper(stack, tmp_path_factory):
    return Shell(stack, tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def lab(stack):
    return Lab(stack)


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("by-hand")


@pytest.fixture(scope="module")
def topic(lab, namespace):
    """One published ledger whose lag has passed, and a certified one behind it."""
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [published] = offload_batch(stack, [topic.ledger_id])
        assert published.state == "published"
        produce(lab.endpoints, topic.spec)
        [behind] = [i for i in lab.close_current(topic.spec.topic) if i > topic.ledger_id][-1:]
        [waiting] = offload_batch(stack, [behind], publish=False)
        assert waiting.state == "verified"
        lab.older(stack)
    return topic, behind


def test_holds_of_every_scope_are_listed_and_keep_a_due_ledger(tierkeeper, lab, namespace, topic):
    due, _behind = topic
    scopes = {
        "ledger": (due.ledger_id,),
        "topic": ("--topic", due.spec.topic),
        "namespace": ("--namespace", namespace),
        "all": ("--all",),
    }
    try:
        for scope, words in scopes.items():
            if scope == "topic":
                told = tierkeeper("hold", "set", *words, *WHO).stdout.splitlines()
                assert told[0] == f"topic persistent://{due.spec.topic}: held"
                assert told[1] == f"What a hold of {due.ml_name} cannot stop:"
                for line, word in zip(told[2:], BEYOND, strict=True):
                    assert word in line
            else:
                set_now = tierkeeper.document("hold", "set", *words, *WHO)
                assert [*set_now["holds"].values()] == [True]
        held = tierkeeper.document("hold", "list")["holds"]
        ours = {h["scope"]: h for h in held if h["reason"] == "audit 17"}
        assert {scope: h["name"] for scope, h in ours.items()} == {
            "ledger": str(due.ledger_id),
            "topic": due.ml_name,
            "namespace": namespace,
            "all": "",
        }
        assert {h["author"] for h in ours.values()} == {"ops"}
        [row] = tierkeeper.document("ledger", "release", due.ledger_id, "--plan", **DUE)["ledgers"]
        assert row["decision"] == "wait"
        assert [reason for reason in row["reasons"] if "under a release hold" in reason]
        assert "audit 17 (ops)" in row["reasons"][0]
        swept = tierkeeper("orphan", "sweep", "--execute", code=RefusedError.exit_code)
        assert "everything is held" in swept.stderr
        lifted = tierkeeper.document("hold", "lift", "--all", "--reason", "done", "--execute")
        assert lifted["holds"] == [keys.HOLD_ALL]
        gone = tierkeeper(
            "hold",
            "lift",
            "--all",
            "--reason",
            "done",
            "--execute",
            code=LedgerNotFoundError.exit_code,
        )
        assert "no such hold" in gone.stderr
    finally:
        with lab.open() as stack:
            for found in list_brakes(stack, HOLD):
                if not isinstance(found, str) and found.reason == "audit 17":
                    holds.lift_hold(stack, found.scope, reason="done", author="ops")


def test_the_hold_of_a_partitioned_topic_covers_partitions_added_later(tierkeeper, lab):
    whole = f"{lab.namespace('partitions')}/orders"
    namespace = whole.rpartition("/")[0]
    lab.admin("PUT", f"/persistent/{whole}/partitions", 1)
    first = lab.topic(namespace, name="orders-partition-0")
    tierkeeper("hold", "set", "--topic", whole, *WHO)
    lab.admin("POST", f"/persistent/{whole}/partitions", 2)
    later = lab.topic(namespace, name="orders-partition-1")
    both = [first.ledger_id, later.ledger_id]
    with lab.open() as stack:
        for outcome in offload_batch(stack, both):
            assert outcome.state == "published", outcome
        lab.older(stack)
    rows = tierkeeper.document("ledger", "release", *both, "--execute", **DUE)["ledgers"]
    for row in rows:
        assert row["result"] == "waits", row
        assert "audit 17 (ops)" in str(row)
    with lab.open() as stack:
        assert all(stack.ledgers.read(ledger_id) is not None for ledger_id in both)
    tierkeeper("hold", "set", "--topic", f"{whole}-partition-1", *WHO)
    lifted = tierkeeper.document("hold", "lift", "--topic", whole, "--reason", "done", "--execute")
    assert [*lifted["still_held"]] == [f"persistent://{whole}-partition-1"]
    rows = tierkeeper.document("ledger", "release", *both, "--execute", **DUE)["ledgers"]
    assert {row["ledger_id"]: row["result"] for row in rows} == dict(
        zip(both, ("released", "waits"), strict=True)
    )


def test_a_plan_is_written_refused_once_edited_and_carried_out_with_what_waits(
    tierkeeper, lab, topic, tmp_path
):
    due, behind = topic
    file, edited = tmp_path / "plan.json", tmp_path / "edited.json"
    told = tierkeeper("ledger", "release", due.ledger_id, behind, "--plan-file", file, **DUE).stdout
    assert f"nothing was done, `--approved {file} --execute` does it" in told
    body = json.loads(file.read_text())
    assert [item["ledger_id"] for item in body["release"]] == [due.ledger_id]
    assert [item["ledger_id"] for item in body["not_released"]] == [behind]

    body["release"][0]["ledger_id"] = behind
    edited.write_text(json.dumps(body))
    refused = tierkeeper(
        "ledger", "release", "--approved", edited, "--execute", code=FormatError.exit_code, **DUE
    )
    assert "the plan was edited, make a new one" in refused.stderr
    with lab.open() as stack:
        assert stack.ledgers.read(due.ledger_id) is not None

    done = tierkeeper.document(
        "ledger", "release", "--approved", file, "--execute", "--publish-waiting", **DUE
    )
    assert done["executed"] is True
    results = {row["ledger_id"]: row for row in done["ledgers"]}
    assert results[due.ledger_id]["result"] == "released"
    assert results[due.ledger_id]["bytes_released"] > 0
    assert results[behind]["result"] == "waits"  # it was not due when the plan was made
    with lab.open() as stack:
        assert stack.ledgers.read(due.ledger_id) is None
        assert stack.ledgers.read(behind) is not None
        context = stack.topics.read(due.ml_name)[0].ledger(behind).offload
        assert context.complete  # published with the release's reload


def test_a_copy_that_is_given_up_is_made_again_by_a_scrub(tierkeeper, lab, topic):
    due, behind = topic
    given = tierkeeper.document("ledger", "give-up", behind, "--reason", "wrong clock", "--execute")
    assert (given["ledger_id"], given["topic"], given["fresh"]) == (behind, due.name, True)
    tierkeeper("scrub", "run", "--topic", due.spec.topic, "--execute")
    with lab.open() as stack:
        context = stack.topics.read(due.ml_name)[0].ledger(behind).offload
        assert str(context.uid) != given["uid"]


def test_orphans_are_told_apart_and_swept_with_what_it_frees(tierkeeper, lab, namespace):
    topic = lab.topic(namespace)
    stranger = f"{uuid4()}-ledger-987654321"
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert outcome.verified
        [attempt] = stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))
        assert win_outcome(stack, attempt, "abandon", reason="not wanted") is not None
        stack.objects.put(stranger, b"theirs")
        lab.older(stack)
        try:
            listed = tierkeeper.document("orphan", "list", **YOUNG)
            [ours] = [a for a in listed["attempts"] if a["ledger_id"] == topic.ledger_id]
            assert ours["decision"] == "sweep"
            assert set(ours["objects"]) == {attempt.record.data_key, attempt.record.index_key}
            [theirs] = [f for f in listed["foreign"] if f["objects"] == [stranger]]
            assert theirs["owner"].startswith("unknown")
            assert (theirs["ledger_id"], theirs["bytes"]) == (987654321, 6)
            assert isinstance(listed["broker_attempts"], list)
            assert (listed["bytes_freed"], listed["bytes_stay"], listed["errors"]) == (0, 0, [])
            assert stack.objects.head(attempt.record.data_key) is not None

            swept = tierkeeper.document("orphan", "sweep", "--execute", **YOUNG)
            assert swept["executed"] is True
            assert swept["bytes_freed"] >= ours["bytes"] > 0
            assert (swept["bytes_stay"], swept["errors"]) == (0, [])
            assert stack.objects.head(attempt.record.data_key) is None
            assert stack.objects.head(stranger) is not None
        finally:
            stack.objects.delete(stranger)
