"""`topic offload` and `topic offload-status` over simulated servers: words, documents, exit
codes.
"""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.resources.errors import BrokerError

TOPIC = "t/ns/persistent/orders"
NAME = "t/ns/orders"


class Cluster:
    """Ledgers 0, 1 and 2 of ten bytes each are closed, 3 is open; `stack` is what commands get."""

    def __init__(self):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.site.broker.create_topic(TOPIC)
        for _ in range(3):
            self.site.broker.produce(TOPIC, [b"first", b"later"])
            self.site.broker.roll_over(TOPIC)
        self.stack = Process(self.world, "cli", self.site).stack()
        self.slept = []
        self.told = []

    def offloaded(self):
        found = self.stack.topics.read(TOPIC)
        assert found is not None
        return [i.ledger_id for i in found[0].ledgers if i.offload and i.offload.complete]

    def on_sleep(self, act):
        def sleep(seconds):
            self.slept.append(seconds)
            self.world.scheduler.now += seconds
            act()

        self.stack = replace(self.stack, sleep=sleep, narrate=self.told.append)

    def claim(self, ledger_id):
        now = self.stack.objects.server_time()
        record = Claim(
            ledger_id=ledger_id,
            run_id="other",
            attempt=None,
            expires_at=now.replace(year=now.year + 1),
        )
        self.stack.book.create(keys.claim(ledger_id), record)


@pytest.fixture
def cluster(monkeypatch):
    cluster = Cluster()

    @contextmanager
    def opened(_session, _runner=None):
        yield cluster.stack

    monkeypatch.setattr(Session, "stack", opened)
    return cluster


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_all_before_a_position_is_published_and_again_is_nothing(cluster, capsys):
    found = document(capsys, "topic", "offload", NAME, "--before", "2:1", "--execute")
    assert found["schema"] == "tierkeeper/topic-offload/1"
    assert found["chosen"] == [0, 1]
    assert [one["state"] for one in found["ledgers"]] == ["published", "published"]
    assert (found["first_unoffloaded"], found["wanted_first_unoffloaded"]) == ("2:0", "2:0")
    assert found["reached"] is True
    assert cluster.offloaded() == [0, 1]
    again = document(capsys, "topic", "offload", NAME, "--before", "2:0", "--execute")
    assert (again["chosen"], again["already_offloaded"], again["ledgers"]) == ([], [0, 1], [])


@pytest.mark.parametrize(
    ("keep", "chosen"), [("0", [0, 1, 2]), ("9", [0, 1, 2]), ("10", [0, 1]), ("30", [])]
)
def test_the_newest_bytes_are_kept_and_a_dry_run_writes_nothing(cluster, capsys, keep, chosen):
    before = {summary.key for summary in cluster.stack.objects.list_objects()}
    found = document(capsys, "topic", "offload", NAME, "--keep-bytes", keep, "--plan")
    assert found["chosen"] == chosen
    assert found["executed"] is False
    assert found["chosen_bytes"] == 10 * len(chosen)
    assert "only a broker that has it loaded knows the open ledger's size" in found["notes"][0]
    assert {summary.key for summary in cluster.stack.objects.list_objects()} == before
    assert cluster.offloaded() == []


def test_the_open_ledger_of_a_loaded_topic_counts_with_what_its_broker_says(
    cluster, monkeypatch, capsys
):
    broker = cluster.site.broker
    stats = broker.internal_stats(f"persistent://{NAME}") | {"currentLedgerSize": 5}
    monkeypatch.setattr(broker, "internal_stats", lambda _topic: stats)
    cluster.world.scheduler.now += 120  # broker-stats list it
    for keep, chosen in (("24", [0, 1]), ("25", [0]), ("4", [0, 1, 2])):
        found = document(capsys, "topic", "offload", NAME, "--keep-bytes", keep, "--plan")
        assert (found["chosen"], found["notes"]) == (chosen, [])


def test_a_ledger_that_waits_is_told_and_is_no_failure(cluster, capsys):
    cluster.claim(1)
    assert run(["topic", "offload", NAME, "--before", "2:0", "--execute"]) == 0
    said = capsys.readouterr().out
    assert "waits: another run works on it" in said
    assert said.splitlines()[-1] == "first un-offloaded 1:0, wanted 2:0"


def test_wait_goes_on_until_the_other_run_is_done(cluster, capsys):
    cluster.claim(1)

    def drop():
        if len(cluster.slept) == 2:
            cluster.world.objects.delete(cluster.stack.book.prefix + keys.claim(1))

    cluster.on_sleep(drop)
    found = document(capsys, "topic", "offload", NAME, "--before", "2:0", "--wait", "--execute")
    assert found["reached"] is True
    assert [one["state"] for one in found["ledgers"]] == ["published", "published"]
    assert cluster.slept == [10.0, 10.0]


def test_wait_ends_with_1_when_the_time_is_over(cluster, capsys):
    cluster.claim(0)
    cluster.on_sleep(lambda: None)
    words = ["topic", "offload", NAME, "--before", "1:0", "--wait", "--timeout", "25", "--execute"]
    assert run(words) == 1
    assert cluster.slept[:2] == [10.0, 10.0]
    assert 20 < sum(cluster.slept) <= 25  # what the passes took counts, too
    assert capsys.readouterr().out.splitlines()[-1] == "first un-offloaded 0:0, wanted 1:0"
    said = "first un-offloaded 0:0, wanted 1:0; ledger 0 another run works on it: run other"
    assert cluster.told[0].startswith(said)


def test_wait_does_not_wait_for_what_no_waiting_cures(cluster, capsys):
    cluster.on_sleep(lambda: None)
    cluster.site.cluster.delete_ledger(0)
    assert run(["topic", "offload", NAME, "--before", "1:0", "--wait", "--execute"]) == 1
    assert cluster.slept == []
    assert "missing from BookKeeper" in capsys.readouterr().out


def test_wait_outlasts_a_broker_that_is_away_for_a_while(cluster, monkeypatch, capsys):
    asked = cluster.site.broker.effective_offload_policies

    def away_until_waited_for(topic):
        if not cluster.slept:
            raise BrokerError("no broker answers")
        return asked(topic)

    monkeypatch.setattr(cluster.site.broker, "effective_offload_policies", away_until_waited_for)
    cluster.on_sleep(lambda: None)
    found = document(capsys, "topic", "offload", NAME, "--before", "1:0", "--wait", "--execute")
    assert found["reached"] is True
    assert cluster.slept == [10.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what to offload: --before LEDGER:ENTRY or --keep-bytes N"),
        (["--before", "2:0", "--keep-bytes", "0"], "before is '2:0' and keep-bytes is 0"),
        (["--before", "2"], "'2' is no position; expected LEDGER:ENTRY"),
        (["--before", "-1:-1"], "'-1:-1' is no position"),
        (["--keep-bytes", "-1"], "must not be negative"),
        (["--before", "2:0", "--timeout", "5"], "--timeout says how long to --wait"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(cluster, capsys, words, said):
    assert run(["topic", "offload", NAME, *words]) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert cluster.offloaded() == []


def test_a_topic_that_nobody_has_is_a_usage_error(cluster, capsys):
    assert run(["topic", "offload", "t/ns/typo", "--keep-bytes", "0"]) == 2
    assert "the metadata store has no such topic" in capsys.readouterr().err


@pytest.mark.parametrize("position", ["9:0", "1:2"])
def test_a_position_that_the_topic_does_not_have_is_refused(cluster, capsys, position):
    assert run(["topic", "offload", NAME, "--before", position]) == 26
    said = capsys.readouterr().err
    assert f"persistent://{NAME}: position {position}: " in said
    assert "prints its ledgers" in said


@pytest.mark.parametrize("mode", [TieringMode.DISABLED, TieringMode.PAUSED])
def test_a_topic_that_is_switched_off_is_refused_and_still_has_a_status(cluster, capsys, mode):
    own = OwnPolicies(default=OwnPolicy(mode=mode))
    cluster.stack = replace(cluster.stack, own_policies=own)
    assert run(["topic", "offload", NAME, "--keep-bytes", "0"]) == 26
    said = capsys.readouterr().err
    assert f"tiering is {mode.value}: by the default level of tiering.toml" in said
    [status] = document(capsys, "topic", "offload-status", NAME)["topics"]
    assert {one["reason"] for one in status["waiting"]} == {mode.value}


def test_a_system_topic_is_never_touched(cluster, capsys):
    cluster.site.broker.create_topic("t/ns/persistent/__change_events")
    assert run(["topic", "offload", "t/ns/__change_events", "--keep-bytes", "0"]) == 26
    assert run(["topic", "offload-status", "t/ns/__change_events"]) == 26
    assert "never touched: system topic" in capsys.readouterr().err


def test_a_partitioned_topic_has_positions_by_partition(cluster, capsys):
    for number in range(2):
        cluster.site.broker.create_topic(f"t/ns/persistent/parts-partition-{number}")
    assert run(["topic", "offload", "t/ns/parts", "--keep-bytes", "0"]) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "t/ns/parts has 2 partitions" in said
    found = document(capsys, "topic", "offload-status", "t/ns/parts")
    assert [one["status"] for one in found["topics"]] == ["NOT_RUN", "NOT_RUN"]
    part = "t/ns/parts-partition-1"
    assert document(capsys, "topic", "offload", part, "--keep-bytes", "0")["chosen"] == []


def test_the_status_of_what_is_stored(cluster, capsys):
    document(capsys, "topic", "offload", NAME, "--before", "1:0", "--execute")
    cluster.claim(1)
    found = document(capsys, "topic", "offload-status", NAME)
    [status] = found["topics"]
    assert found["schema"] == "tierkeeper/topic-offload-status/1"
    assert (status["status"], status["first_unoffloaded"]) == ("RUNNING", "1:0")
    assert status["offloaded"] == {"ledgers": 1, "bytes": 10}
    assert status["copying"] == {"ledgers": 1, "bytes": 10}
    assert min(one["ledger_id"] for one in status["waiting"]) == 1
    capsys.readouterr()
    assert run(["topic", "offload-status", NAME]) == 0
    told = capsys.readouterr().out
    assert "first un-offloaded  1:0" in told
    assert "offloaded           1 ledgers, 10 B" in told
