"""The manual trigger beside a real broker's: a twin topic that the broker offloads by REST.

Twins have the same ledgers, in order and size; what each side took is compared by place in the
list.
"""

import json
from dataclasses import replace

import dagster as dg
import pytest

from tests.support.cli_shell import Shell
from tests.support.tiered_cluster import tiered_cluster, wait_until
from tiering_assets.batch.offload_prefix_rules import (
    KeepBytes,
    choose_prefix,
    keep_newest,
    require_position,
)
from tiering_assets.definitions import defs
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.metastore.ledger_info import Position

pytestmark = pytest.mark.stack

NAMESPACE = "public/manual"
LEDGERS = 4  # closed ones; the open one is empty


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        connected.make_namespace(NAMESPACE)
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    return Shell(stack, tmp_path_factory.mktemp("manual"))


def filled(cluster, name):
    spec = TopicSpec(topic=f"{NAMESPACE}/{name}", messages=20, payload_bytes=1000)
    cluster.fill(*(replace(spec, seed=seed, messages=20 + 10 * seed) for seed in range(LEDGERS)))
    assert len(ids(cluster, spec)) == LEDGERS + 1
    return spec


@pytest.fixture(scope="module")
def twins(cluster):
    """(the broker's, ours)"""
    return filled(cluster, "theirs"), filled(cluster, "ours")


def listed(cluster, spec):
    return cluster.managed_ledger(spec).ledgers


def ids(cluster, spec):
    return [info.ledger_id for info in listed(cluster, spec)]


def complete(cluster, spec):
    """Places in the list of what is offloaded."""
    return [
        place
        for place, info in enumerate(listed(cluster, spec))
        if info.offload is not None and info.offload.complete
    ]


def asked(cluster, spec, ledger_id, entry_id):
    """HTTP status of the broker's own trigger."""
    port = int(cluster.endpoints.admin_url.rpartition(":")[2].strip("/"))
    body = {"ledgerId": ledger_id, "entryId": entry_id, "partitionIndex": -1}
    path = f"/admin/v2/persistent/{spec.topic}/offload"
    return http_call(port, "PUT", path, body=json.dumps(body).encode(), timeout_s=60)[0]


def answered(cluster, spec):
    """The broker's status once its run is over."""
    path = f"/persistent/{spec.topic}/offload"
    wait_until(lambda: cluster.admin("GET", path)["status"] != "RUNNING", "the broker's offload")
    return cluster.admin("GET", path)


def test_the_broker_refuses_the_positions_that_we_refuse(cluster, twins):
    theirs, _ours = twins
    ledgers = listed(cluster, theirs)
    missing = ledgers[-1].ledger_id + 1000
    for position in (Position(missing, 0), Position(0, 0), Position(ledgers[1].ledger_id, 10**6)):
        with pytest.raises(RefusedError):
            require_position(theirs.topic, ledgers, position)
        status = asked(cluster, theirs, position.ledger_id, position.entry_id)
        said = answered(cluster, theirs) if status < 400 else {"status": "ERROR"}
        assert said["status"] == "ERROR", (position, said)
    assert complete(cluster, theirs) == []


def test_before_a_position_both_take_the_same_and_name_the_same_next_one(cluster, shell, twins):
    theirs, ours = twins
    for place, entry_id in ((1, 0), (3, 5)):
        at = ids(cluster, theirs)[place]
        assert asked(cluster, theirs, at, entry_id) < 300
        status = answered(cluster, theirs)
        assert status["status"] == "SUCCESS"
        first = status["firstUnoffloadedMessage"]
        chosen = choose_prefix(listed(cluster, ours), Position(ids(cluster, ours)[place], 0))
        before = f"{ids(cluster, ours)[place]}:{entry_id}"
        dry = shell.document("topic", "offload", ours.topic, "--before", before, "--plan")
        assert dry["chosen"] == chosen.ledger_ids
        done = shell.document(
            "topic", "offload", ours.topic, "--before", before, "--wait", "--execute"
        )
        assert done["reached"] is True
        assert complete(cluster, ours) == complete(cluster, theirs) == list(range(place))
        assert first["ledgerId"] == ids(cluster, theirs)[place]
        assert first["entryId"] == 0
        assert done["first_unoffloaded"] == f"{ids(cluster, ours)[place]}:0"
    status = shell.document("topic", "offload-status", ours.topic)
    [told] = status["topics"]
    assert (told["status"], told["offloaded"]["ledgers"]) == ("SUCCESS", 3)
    assert told["first_unoffloaded"] == f"{ids(cluster, ours)[3]}:0"


def test_pulsar_admins_size_is_taken_from_the_same_numbers(cluster, twins):
    """The command reads internalStats; we read the metadata store and the open ledger's size."""
    theirs, _ours = twins
    stats = cluster.admin("GET", f"/persistent/{theirs.topic}/internalStats")
    sizes = [(one["ledgerId"], one["size"]) for one in stats["ledgers"]]
    sizes[-1] = (sizes[-1][0], stats["currentLedgerSize"])
    for keep in (0, sizes[-2][1], sum(size for _i, size in sizes[-3:]), 10**9):
        total, previous, expected = 0, sizes[-1][0], None
        for ledger_id, size in reversed(sizes):
            total += size
            if total > keep:
                expected = previous
                break
            previous = ledger_id
        found = keep_newest(
            listed(cluster, theirs), KeepBytes(keep), open_bytes=stats["currentLedgerSize"]
        )
        assert found.ledger_id == (sizes[0][0] if expected is None else expected)


def launch(instance, **config):
    return defs.resolve_job_def("offload").execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"ops": {"offload_ledgers": {"config": config}}},
    )


def test_the_launchpad_takes_the_same_words_and_says_what_is_wrong(cluster, stack, monkeypatch):
    for name, value in (stack.environment() | {"TIERKEEPER_DAGSTER_RUNNER": "local"}).items():
        monkeypatch.setenv(name, value)
    spec = filled(cluster, "launched")
    topic, second = f"persistent://{spec.topic}", ids(cluster, spec)[1]
    with dg.DagsterInstance.ephemeral() as instance:
        for config, said in (
            ({"before": f"{second}:0"}, "expected 1 name in `topics`, found 0"),
            ({"before": "x", "topics": [topic]}, "'x' is no position; expected LEDGER:ENTRY"),
            ({"keep_bytes": 0, "topics": [topic], "ledger_ids": [second]}, "not by both"),
            ({"before": "1:1", "keep_bytes": 0, "topics": [topic]}, "give one"),
            ({"keep_bytes": 0, "topics": [f"{topic}-typo"]}, "has no such topic"),
        ):
            result = launch(instance, **config)
            [failure] = [event for event in result.all_events if event.is_step_failure]
            assert said in failure.step_failure_data.user_failure_data.description
        assert complete(cluster, spec) == []

        result = launch(instance, before=f"{second}:0", topics=[topic])
        assert result.success
        assert complete(cluster, spec) == [0]
        left = cluster.managed_ledger(spec).ledgers
        kept = sum(info.size or 0 for info in left if info.ledger_id > second)
        # As the launchpad fills it in: every field with its default, and one of them changed.
        whole = {
            "topics": [topic],
            "ledger_ids": [],
            "max_ledgers": 100,
            "when_due": False,
            "before": "",
        }
        assert launch(instance, **whole, keep_bytes=kept).success
        assert complete(cluster, spec) == [0, 1]
