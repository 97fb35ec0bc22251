"""Scrub and rescue on real servers: what is found, what is healed, and what is told to be lost."""

import json
import time
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from uuid import uuid4

import dagster as dg
import pytest

from tests.support.broker_truncation import SENT, short_lag_namespace, truncated_by_the_broker
from tests.support.default_cluster import SCRUBBED_LEDGERS
from tests.support.live_topic import client_of, read_payloads
from tests.support.tiered_cluster import ml_names, tiered_cluster, wait_until
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.orphans import Sweep
from tiering_assets.clean.sweep import find_leavings
from tiering_assets.cli import main as cli_main
from tiering_assets.definitions import defs
from tiering_assets.ground.reasons import NotNow
from tiering_assets.offload_format.decoder import decode_index_fields
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.models import BrokerCopy, EntryRange, Publication, Quarantine, Scrub
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec, iter_messages
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.plan import Depth
from tiering_assets.scrub.scrub import plan_run, scrub
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.tasks.worker import Worker

pytestmark = pytest.mark.stack
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


def spec_of(name, **changes):
    topic = f"public/default/scrub-{name}-{uuid4().hex[:6]}"
    return TopicSpec(**{"topic": topic, "messages": 20, "payload_bytes": 2 * KIB, **changes})


def with_scrub(cluster, **values):
    settings = cluster.steps.settings
    changed = replace(settings, scrub=replace(settings.scrub, **values))
    return replace(cluster.steps, settings=changed)


def older(cluster):
    """The store's times count whole seconds: what is written next is younger."""
    before = cluster.steps.objects.server_time()
    wait_until(lambda: cluster.steps.objects.server_time() > before, "a second passed")


def overwrite(cluster, key, alter):
    found = cluster.steps.objects.get(key)
    cluster.steps.objects.put(key, alter(bytearray(found.body)), metadata=found.head.metadata)


def flip(at):
    def alter(body):
        body[at] ^= 1
        return bytes(body)

    return alter


def payloads(*specs):
    return [message.payload for spec in specs for message in iter_messages(spec)]


def read(cluster, spec):
    return read_payloads(cluster.endpoints, f"persistent://{spec.topic}")


def published(cluster, spec):
    [ledger_id] = cluster.ledger_ids(spec)
    [outcome] = cluster.offload([ledger_id])
    older(cluster)
    return ledger_id, outcome.certificate.record


# ----- nothing is wrong


def test_a_clean_fleet_has_no_findings_and_budgets_stop_and_resume(cluster):
    spec = spec_of("clean", messages=150, payload_bytes=100 * KIB)  # three blocks
    cluster.fill(spec, replace(spec, seed=1, messages=5))
    ledger_ids = cluster.ledger_ids(spec)
    large, small = ledger_ids
    cluster.offload([large])
    older(cluster)
    cluster.offload([small])
    [ml_name] = ml_names(spec)
    assert plan_run(cluster.steps, [ml_name]).looks == ()  # certified a moment ago
    before = cluster.steps.topics.read(ml_name)[1].stat.version
    uids = {i: cluster.context_uid(spec, i) for i in ledger_ids}

    older(cluster)
    tight = with_scrub(cluster, bytes_max=1, shallow_every_s=10**6)
    read_blocks = []
    for _run in range(3):
        run = scrub(tight, [ml_name], deep=True)
        [looked] = run.looked
        assert (looked.candidate.ledger_id, looked.findings) == (large, ())
        assert [look.candidate.ledger_id for look in run.deferred] == [small]
        assert looked.checked is not None
        read_blocks.append(looked.checked.blocks_read)
        assert run.bytes_read <= 5 * MIB
        older(cluster)
    assert read_blocks == [1, 2, 3]  # each goes on where the last one stopped
    book = cluster.steps.book
    assert book.read(Scrub, keys.scrub(large, uids[large], "deep")).record.entries == 150
    run = scrub(tight, [ml_name], deep=True)
    assert [one.candidate.ledger_id for one in run.looked] == [small]  # the oldest is next
    older(cluster)

    run = scrub(with_scrub(cluster, requests_max=7), [ml_name], deep=True)
    assert (len(run.looked), len(run.deferred)) == (1, 1)
    run = scrub(with_scrub(cluster, shallow_every_s=1e-6), [ml_name])
    assert sorted(one.candidate.ledger_id for one in run.looked) == ledger_ids
    assert {one.depth for one in run.looked} == {Depth.SHALLOW}
    assert run.bytes_read == 0
    assert [one.findings for one in run.looked] == [(), ()]
    assert cluster.steps.topics.read(ml_name)[1].stat.version == before
    for ledger_id, uid in uids.items():
        assert book.read(Quarantine, keys.quarantine(ledger_id, uid)) is None
        assert book.read(Scrub, keys.scrub(ledger_id, uid, "failed")) is None


def test_no_alarm_for_an_attempt_that_left_the_node_meanwhile(cluster):
    """The plan is old by the time of the look: the attempt was replaced and its objects are
    gone.
    """
    spec = spec_of("moved")
    cluster.fill(spec)
    ledger_id, record = published(cluster, spec)
    [ml_name] = ml_names(spec)
    real = cluster.steps.objects

    class Meanwhile:
        """Deletes the topic and the objects between the listing and the look."""

        gone = False  # what is found missing is looked at twice

        def __getattr__(self, name):
            return getattr(real, name)

        def head(self, key, **options):
            if key == record.data.key and not self.gone:
                self.gone = True
                cluster.admin("DELETE", f"/persistent/{spec.topic}?force=true")
                real.delete(record.data.key)
                real.delete(record.index.key)
            return real.head(key, **options)

    steps = replace(cluster.steps, objects=Meanwhile())
    run = scrub(steps, [ml_name], deep=True)
    assert [one.moved for one in run.looked] == [True] * len(run.looked)
    assert run.looked
    assert run.broken == []
    assert cluster.steps.book.read(Quarantine, keys.quarantine(ledger_id, record.uid)) is None


# ----- damage to our own copies, the bookies still have the ledger


def put_another(body):
    return bytes(len(body))


DAMAGE = {
    "data-deleted": lambda c, r: c.steps.objects.delete(r.data.key),
    "index-deleted": lambda c, r: c.steps.objects.delete(r.index.key),
    "byte-flipped": lambda c, r: overwrite(c, r.data.key, flip(5000)),
    "index-flipped": lambda c, r: overwrite(c, r.index.key, flip(40)),
    "replaced": lambda c, r: overwrite(c, r.data.key, put_another),
}


def test_damage_is_found_quarantined_and_healed_and_the_broker_serves_all(cluster):
    specs = {name: spec_of(name) for name in DAMAGE}
    certified = {}
    for name, spec in specs.items():
        cluster.fill(spec)
        certified[name] = published(cluster, spec)
        DAMAGE[name](cluster, certified[name][1])
    names = [name for spec in specs.values() for name in ml_names(spec)]
    eager = with_scrub(cluster, shallow_every_s=1e-6)
    run = scrub(eager, names)
    assert {one.candidate.ledger_id for one in run.broken} == {i for i, _ in certified.values()}
    book = cluster.steps.book
    for name, (ledger_id, record) in certified.items():
        healed = run.healed[ledger_id]
        assert isinstance(healed, Healed), (name, healed)
        assert healed.note == ""  # offsets kept
        assert cluster.context_uid(specs[name], ledger_id) == healed.uid != record.uid
        assert book.read(Quarantine, keys.quarantine(ledger_id, record.uid)) is not None
        assert read(cluster, specs[name]) == payloads(specs[name]), name
    older(cluster)
    again = scrub(eager, names, deep=True)
    assert again.broken == []
    assert again.healed == {}
    _old_objects_stay_an_hour(cluster, certified)
    cluster.release(specs["byte-flipped"], [certified["byte-flipped"][0]])
    cluster.seal(specs["byte-flipped"])
    assert read(cluster, specs["byte-flipped"]) == payloads(specs["byte-flipped"])


def _old_objects_stay_an_hour(cluster, certified):
    ledger_id, record = certified["byte-flipped"]
    settings = cluster.steps.settings
    eager = replace(
        cluster.steps,
        settings=replace(settings, release=replace(settings.release, guard_age_s=0.001)),
    )

    def decision(steps):
        return next(
            one.decision for one in find_leavings(steps) if one.attempt.record.uid == record.uid
        )

    kept = decision(eager)
    assert isinstance(kept, NotNow)
    assert "brokers may still read it" in str(kept)
    real = cluster.steps.objects

    class AnHourLater:
        def __getattr__(self, name):
            return getattr(real, name)

        def server_time(self):
            from datetime import timedelta

            return real.server_time() + timedelta(hours=1, seconds=1)

    later = decision(replace(eager, objects=AnHourLater()))
    assert later == Sweep(ledger_id, record.uid, replaced=True)


def test_a_byte_that_the_store_flips_in_silence_is_found_by_reading(cluster):
    spec = spec_of("silent")
    cluster.fill(spec)
    ledger_id, record = published(cluster, spec)
    [ml_name] = ml_names(spec)
    real = cluster.steps.objects

    class Rotten:
        """Size and ETag are as they were; one byte of the old data object is not."""

        def __getattr__(self, name):
            return getattr(real, name)

        def get_range(self, key, *, start, length, version_id=None, into=None):
            body = bytearray(real.get_range(key, start=start, length=length, version_id=version_id))
            if key == record.data.key and start <= 5000 < start + length:
                body[5000 - start] ^= 1
            if into is None:
                return bytes(body)
            into[:] = body
            return b""

    settings = with_scrub(cluster, shallow_every_s=1e-6).settings
    runner = LocalRunner(settings, make_worker=lambda: Worker(settings, store=Rotten()))
    steps = replace(cluster.steps, settings=settings, runner=runner, objects=Rotten())
    assert scrub(steps, [ml_name]).broken == []  # nothing shows from outside
    older(cluster)
    run = scrub(steps, [ml_name], deep=True)
    [broken] = run.broken
    assert broken.depth is Depth.DEEP
    assert any("block 1: SHA-256" in finding for finding in broken.findings)
    assert isinstance(run.healed[ledger_id], Healed)
    assert read(cluster, spec) == payloads(spec)


# ----- the bookies have it no more


def test_what_is_lost_of_released_ledgers_is_told_by_entry(cluster):
    flipped, deleted = spec_of("lost-one"), spec_of("lost-all", messages=7)
    for spec in (flipped, deleted):
        cluster.fill(spec)
    found = {spec: published(cluster, spec) for spec in (flipped, deleted)}
    for spec, (ledger_id, _record) in found.items():
        cluster.release(spec, [ledger_id])
    one, record = found[flipped]
    at = bytes(cluster.objects(one, record.uid).data).index(payloads(flipped)[11]) + 100
    overwrite(cluster, record.data.key, flip(at))
    all_of_it, gone = found[deleted]
    cluster.steps.objects.delete(gone.data.key)

    names = [name for spec in found for name in ml_names(spec)]
    run = scrub(with_scrub(cluster, shallow_every_s=1e-6), names)
    lost = {looked.candidate.ledger_id: looked.lost for looked in run.broken}
    assert lost == {one: (EntryRange(11, 11),), all_of_it: (EntryRange(0, 6),)}
    assert run.healed == {}
    for ledger_id, facts in found.values():
        kept = cluster.steps.book.read(Scrub, keys.scrub(ledger_id, facts.uid, "failed"))
        assert kept.record.lost == lost[ledger_id]
        assert cluster.steps.book.read(Quarantine, keys.quarantine(ledger_id, facts.uid))
    for spec in found:  # they cannot be read: leave no such topics to other tests
        cluster.admin("DELETE", f"/persistent/{spec.topic}?force=true")


# ----- copies that a broker wrote


def test_a_brokers_copy_is_scrubbed_entry_by_entry_with_the_bookies(cluster):
    spec = spec_of("theirs", messages=120, payload_bytes=100 * KIB)
    cluster.fill(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    assert cluster.broker_offloads(spec)["status"] == "SUCCESS"
    uid = cluster.context_uid(spec, ledger_id)
    [ml_name] = ml_names(spec)
    run = scrub(cluster.steps, [ml_name])  # never looked at: due at once, both ways
    assert [(one.depth, one.findings) for one in run.looked] == [
        (Depth.SHALLOW, ()),
        (Depth.DEEP, ()),
    ]
    older(cluster)
    theirs = decode_index_fields(cluster.objects(ledger_id, uid).index)
    recorded = _recorded(cluster, spec, ledger_id, uid, theirs)
    overwrite(cluster, data_key(uid, ledger_id), flip(theirs.entries[1].offset + 70_000))
    run = scrub(cluster.steps, [ml_name], deep=True)
    [broken] = run.broken
    assert "block 2: entries digest: bookies serve" in broken.findings[0]
    healed = run.healed[ledger_id]
    assert isinstance(healed, Healed)
    assert healed.note == ""
    ours = decode_index_fields(cluster.objects(ledger_id, healed.uid).index)
    assert ours.entries == theirs.entries  # a broker's memory of offsets stays right
    assert read(cluster, spec) == payloads(spec)
    for key in (data_key(uid, ledger_id), index_key(uid, ledger_id)):
        assert cluster.steps.objects.head(key) is not None  # not ours to delete
    assert cluster.steps.book.read(BrokerCopy, keys.broker_copy(ledger_id, uid)) == recorded
    assert cluster.steps.book.read(BrokerCopy, keys.broker_copy(ledger_id, healed.uid)) is None


def _recorded(cluster, spec, ledger_id, uid, index):
    """What the deep look said, compared with the broker's index and with the bytes themselves."""
    found = cluster.steps.book.require(BrokerCopy, keys.broker_copy(ledger_id, uid))
    record, data = found.record, bytes(cluster.objects(ledger_id, uid).data)
    assert [(one.part_number, one.first_entry_id, one.offset) for one in record.blocks] == [
        (one.part_number, one.first_entry_id, one.offset) for one in index.entries
    ]
    for block in record.blocks:
        its = data[block.offset : block.offset + block.block_length]
        assert block.sha256 == sha256(its).hexdigest()
    assert sum(block.block_length for block in record.blocks) == record.data.size == len(data)
    assert sum(block.messages for block in record.blocks) == record.entries == spec.messages
    assert record.bookies_compared
    return found


@pytest.fixture(scope="module")
def short_lag(cluster):
    return short_lag_namespace(cluster, "scrub-lag")


def read_wrong(cluster, topic):
    """What a reader gets within three seconds of a topic that it cannot read to its end."""
    import pulsar

    got = []
    with client_of(cluster.endpoints) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        with suppress(pulsar.PulsarException):
            while True:
                got.append(reader.read_next(timeout_millis=3000).data())
        with suppress(pulsar.PulsarException):
            reader.close()
    return got


def test_a_brokers_truncation_is_rescued_and_served_right_within_ten_seconds(
    cluster, short_lag, record_property
):
    spec, ledger_id, uid = truncated_by_the_broker(cluster, short_lag)
    topic = f"persistent://{spec.topic}"
    cluster.seal(spec)
    wrong = read_wrong(cluster, topic)
    assert wrong != SENT
    assert len(wrong) < len(SENT)
    started = time.monotonic()
    [ml_name] = ml_names(spec)
    run = scrub(cluster.steps, [ml_name])
    rescued = time.monotonic() - started
    assert read(cluster, spec) == SENT
    took = time.monotonic() - started
    assert any("its writer stopped before entry" in f for f in run.broken[0].findings)
    healed = run.healed[ledger_id]
    assert isinstance(healed, Healed)
    assert cluster.context_uid(spec, ledger_id) == healed.uid != uid
    record_property("rescued_s", round(rescued, 2))
    record_property("served_right_after_s", round(took, 2))
    assert took < 10
    publications = cluster.steps.book.iter_records(Publication, keys.publications_of(ml_name))
    assert [p.uid for stored in publications for p in stored.record.ledgers] == [healed.uid]
    older(cluster)
    assert scrub(cluster.steps, [ml_name], deep=True).broken == []


def test_where_the_rescue_comes_too_late_the_lost_entries_are_told(cluster, short_lag):
    spec, ledger_id, _uid = truncated_by_the_broker(cluster, short_lag)
    last = cluster.ledger(ledger_id).last_entry_id
    node = cluster.steps.ledgers.read(ledger_id)
    path = cluster.steps.ledgers.path(ledger_id)
    cluster.steps.metadata.delete(path, expected_version=node.stat.version)  # as the broker would
    run = scrub(cluster.steps, ml_names(spec))
    [broken] = run.broken
    assert broken.lost == (EntryRange(2, last),)  # entries 0 and 1 lie before the first chunk
    assert run.healed == {}
    cluster.admin("DELETE", f"/persistent/{spec.topic}?force=true")


# ----- by command and by job


def test_the_command_and_the_job_say_what_is_broken_and_heal_it(cluster, monkeypatch, capsys):
    spec = spec_of("edges")
    cluster.fill(spec)
    ledger_id, record = published(cluster, spec)
    for name, value in cluster.running.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIERKEEPER_DAGSTER_RUNNER", "local")
    cluster.steps.objects.delete(record.index.key)

    def cli(*words):
        code = cli_main.run([*words, "--topic", spec.topic, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, said = cli("scrub", "run", "--deep", "--plan")
    assert (code, said["schema"], len(said["looks"])) == (0, "tierkeeper/scrub-plan/1", 1)
    assert cluster.context_uid(spec, ledger_id) == record.uid  # nothing was done
    code, said = cli("scrub", "run", "--deep")
    assert code == 1
    assert [one["result"] for one in said["looked"]] == ["broken"]
    assert cluster.context_uid(spec, ledger_id) == record.uid
    code, said = cli("scrub", "status")
    assert (code, [one["broken"] for one in said["ledgers"]]) == (1, [True])

    with dg.DagsterInstance.ephemeral() as instance:
        config = {"topics": [f"persistent://{spec.topic}"]}
        done = defs.resolve_job_def("scrub").execute_in_process(
            instance=instance,
            run_config={"ops": {SCRUBBED_LEDGERS.to_python_identifier(): {"config": config}}},
        )
        assert done.success
        event = instance.get_latest_materialization_event(SCRUBBED_LEDGERS)
    assert event is not None
    assert event.asset_materialization is not None
    facts = {k: v.value for k, v in event.asset_materialization.metadata.items()}
    assert (facts["ledgers"], facts["broken_ledgers"], facts["lost_ledgers"]) == (1, 0, 0)
    assert cluster.context_uid(spec, ledger_id) != record.uid
    code, said = cli("scrub", "status")
    assert (code, [one["broken"] for one in said["ledgers"]]) == (0, [False])
    assert read(cluster, spec) == payloads(spec)


# ----- a second replica


class Noted:
    """A runner that counts blocks by kind and, if told to, lets another replica differ."""

    def __init__(self, runner, *, differ=False):
        self._runner, self._differ = runner, differ
        self.blocks = dict.fromkeys(TaskKind, 0)

    def begin(self):
        self._runner.begin()

    def start(self):
        self._runner.start()

    def run(self, tasks, *, progress=None):
        rows = self._runner.run(tasks, progress=progress)
        for row in rows:
            self.blocks[row.kind] += 1
        return [
            replace(row, entries_sha256="0" * 64)
            if self._differ and row.kind is TaskKind.READ_SOURCE
            else row
            for row in rows
        ]


@pytest.mark.parametrize(("how_many", "read_twice"), [("off", 0), ("sample", 2), ("all", 3)])
def test_a_second_replica_is_read_as_wished(cluster, how_many, read_twice):
    spec = spec_of("replica", messages=150, payload_bytes=100 * KIB)
    cluster.fill(spec)
    [ledger_id] = cluster.ledger_ids(spec)
    settings = replace(cluster.steps.settings)
    settings = replace(settings, verify=replace(settings.verify, second_replica=how_many))
    runner = Noted(LocalRunner(settings), differ=how_many == "all")
    [outcome] = offload_batch(
        replace(cluster.steps, settings=settings, runner=runner), [ledger_id], publish=False
    )
    assert runner.blocks == {
        TaskKind.COPY: 3,
        TaskKind.READ_BACK: 3,
        TaskKind.READ_SOURCE: read_twice,
    }
    if how_many == "all":
        assert isinstance(outcome.error, IntegrityError)
        assert "replicas differ" in str(outcome.error)
        assert cluster.ledger_ids(spec, "quarantined") == [ledger_id]
    else:
        assert outcome.certificate is not None
