"""What the release gate is told of a ledger, fact by fact: nothing that is missing becomes good
news.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.ledger_damage import changed
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.disturb import see
from tiering_assets.look.topic.topic_evidence import find_shadows
from tiering_assets.release import evidence as release_evidence
from tiering_assets.release import evidence as suite_evidence
from tiering_assets.release import look as release_look
from tiering_assets.release.evidence import UnjudgedLedgers, gather, judge_all, look_at_ledgers
from tiering_assets.release.gate import decide_release
from tiering_assets.release.look import gather_topic
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.activity import TopicActivity

PATH = managed_ledger_path(TOPIC)
OTHER = UUID(int=7)


class Asker:
    """A release's process that looks at ledgers of the topic."""

    def __init__(self, scene):
        self.scene, self.stack = scene, scene.process("release")

    @property
    def about(self):
        topic, _node = self.stack.topics.read(TOPIC)
        shadows, seen = find_shadows(self.stack), see(self.stack, TOPIC)
        return gather_topic(self.stack, TOPIC, topic, shadows, seen)

    def evidence(self, ledger_id=0, *, before=None):
        return gather(self.stack, self.about, [ledger_id], before=before)[ledger_id]

    def judged(self, ledger_id=0):
        return self.evidence(ledger_id).judged

    def look(self, ledger_id=0):
        return look_at_ledgers(self.stack, self.about, [ledger_id]).looks[ledger_id]

    def judged_by(self, look):
        [found] = judge_all(self.stack, [UnjudgedLedgers(about=self.about, looks={0: look})])
        return found[0].judged


def refused(judged):
    """Why the gate does not let the ledger go; the lag is none of it."""
    decision = decide_release(judged, lag=timedelta(0), now=judged.topic.store_now)
    return getattr(decision, "reasons", ())


def with_facts(look, **changes):
    return replace(look, facts=replace(look.facts, **changes))


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def due(scene):
    """Ledger 0 is published and its lag has passed; ledger 1 is closed and was never copied."""
    certificate = scene.publish().certificate
    scene.fill(TOPIC)
    scene.past_the_lag()
    return certificate.record


@pytest.fixture
def asker(scene, due):
    return Asker(scene)


def lose(scene, kind, ledger_id=0):
    """Delete the records of a kind, of one ledger or of its topic."""
    folder = f"{kind}/" if kind == "publications" else f"{kind}/{ledger_id}/"
    lost = scene.stack.book.keys(folder)
    assert lost
    for key in lost:
        scene.world.objects.delete(scene.stack.book.prefix + key)


def edit_context(scene, edit):
    stored = scene.cluster.metadata.nodes[PATH]
    found = decode_managed_ledger(stored.data)
    message = found.message_copy()
    edit(message.ledgerInfo[0].offloadContext)
    scene.cluster.metadata.put(PATH, encode_managed_ledger(found.with_message(message)))
    scene.broker.restart()


# ----- what is there, and what is not


def test_a_ledger_that_may_go_shows_all_of_it(asker, due):
    found = asker.judged()
    copy = found.copy
    assert copy.context.uid == copy.certificate.record.uid == copy.certified_entry.uid == due.uid
    assert copy.context.complete
    assert copy.publication.record.ledgers == copy.published
    assert found.suites.passed
    assert copy.node == copy.certificate.record.ledger == due.ledger
    assert (copy.data.key, copy.index.key) == (due.data.key, due.index.key)
    assert copy.data_reads
    assert copy.index_reads
    assert copy.index_agrees
    assert found.topic.place_differs == ()
    assert found.topic.left_alone is None
    assert refused(found) == ()


@pytest.mark.parametrize("ledger_id", [1, 99])
def test_of_a_ledger_that_nobody_copied_nothing_is_said(asker, ledger_id):
    found = asker.judged(ledger_id)
    copy = found.copy
    assert (copy.context, copy.publication, copy.certificate) == (None, None, None)
    assert (copy.data, copy.index, copy.attempt, copy.outcome) == (None, None, None, None)
    assert (copy.published, copy.certified_entry) == ((), None)
    assert not found.suites.passed
    assert not copy.index_agrees


def test_a_context_that_its_broker_has_begun_is_not_complete(asker, scene):
    edit_context(scene, lambda context: setattr(context, "complete", False))
    assert not asker.judged().copy.context.complete


@pytest.mark.parametrize("lost", ["publications", "certificates", "bookkeeper"])
def test_where_one_is_missing_no_suite_is_asked(asker, scene, lost):
    if lost == "bookkeeper":
        scene.cluster.delete_ledger(0)
    else:
        lose(scene, lost)
    assert asker.look().row is None
    found = asker.judged()
    assert not found.suites.passed
    assert (found.copy.publication is None) == (lost == "publications")
    assert (found.copy.certificate is None) == (lost == "certificates")
    assert (found.copy.node is None) == (lost == "bookkeeper")


def test_a_row_has_what_is_missing_of_the_other_records(asker, scene):
    lose(scene, "attempts")
    lose(scene, "outcomes")
    row = asker.look().row
    assert (row.attempt_uid, row.attempt_sha256) == (None, "")
    assert (row.outcome, row.outcome_sha256) == ("", "")


def test_a_copy_that_took_a_day_by_the_stores_clock_took_a_day(asker, monkeypatch):
    """Whatever the process that wrote both records thinks of the time."""

    def look(*args, **how):
        found = release_look.look_at_ledger(*args, **how)
        attempt, certificate = found.facts.attempt, found.facts.certificate
        assert attempt is not None
        assert certificate is not None
        began = certificate.stored_at - timedelta(days=1)
        return with_facts(found, attempt=replace(attempt, stored_at=began))

    monkeypatch.setattr(release_evidence, "look_at_ledger", look)
    assert asker.look().row.verified_after_ms == 86_400_000


def test_suites_that_were_not_run_did_not_pass(asker):
    asker.stack = replace(asker.stack, judge_ledgers=lambda _rows: {})
    assert not asker.judged().suites.passed


def test_a_suite_that_failed_when_the_copy_was_certified_has_not_passed(asker):
    look = asker.look()
    [suite, *_more] = look.facts.certificate.record.suites
    failed = in_record("certificate", suites=(replace(suite, success=False),))(look)
    assert asker.judged_by(look).suites.passed
    assert not asker.judged_by(failed).suites.passed


def test_a_topic_that_is_busy_says_so(asker, scene):
    scene.broker.load(TOPIC)
    scene.wait(120)
    busy = TopicActivity(consumers=10**6, delayed_messages=0, transactions=0)
    scene.broker.activity = lambda _topic: busy
    assert "1000000" in asker.judged().topic.left_alone


# ----- the chain of records


def in_record(name, **changes):
    return lambda look: with_facts(look, **{name: changed(getattr(look.facts, name), **changes)})


def in_entry(**changes):
    def change(look):
        [entry] = look.facts.publication.record.ledgers
        return in_record("publication", ledgers=(replace(entry, **changes),))(look)

    return change


BROKEN = "the chain of records behind the certificate is broken"


BROKEN_LINKS = {
    "no attempt": lambda look: with_facts(look, attempt=None),
    "no outcome": lambda look: with_facts(look, outcome=None),
    "a certificate after another attempt": in_record("certificate", previous="0" * 64),
    "an outcome after another certificate": in_record("outcome", previous="0" * 64),
    "an abandoned attempt": in_record("outcome", outcome="abandon"),
    "a publication after another outcome": in_entry(previous="0" * 64),
    "a publication of another certificate": in_entry(certificate_sha256="0" * 64),
    "a publication of another attempt": in_entry(uid=OTHER),
    "a publication of another ledger": in_entry(ledger_id=7),
}


@pytest.mark.parametrize("broken", BROKEN_LINKS)
def test_each_link_of_the_chain_is_asked_for(asker, broken):
    look = asker.look()
    assert refused(asker.judged_by(look)) == ()
    assert BROKEN in refused(asker.judged_by(BROKEN_LINKS[broken](look)))


def test_ledgers_that_were_published_together_have_a_chain_each(scene):
    scene.publish()  # the namespace's canary
    ids = [scene.fill(TOPIC), scene.fill(TOPIC)]
    assert {one.state for one in offload_batch(scene.process(), ids)} == {"published"}
    asker = Asker(scene)
    for ledger_id in ids:
        assert asker.judged(ledger_id).copy.certified_entry.ledger_id == ledger_id
        assert BROKEN not in refused(asker.judged(ledger_id))
    first, second = (asker.look(i).facts.publication for i in ids)
    assert first.key == second.key


# ----- the objects, and where brokers look for them


@pytest.mark.parametrize("name", ["data", "index"])
@pytest.mark.parametrize("what", ["gone", "replaced", "expires", "archived"])
def test_each_object_is_compared_as_it_lies_there(asker, scene, due, name, what):
    key, objects = getattr(due, name).key, scene.world.objects
    if what == "gone":
        objects.delete(key)
    elif what == "replaced":
        objects.overwrite(key, b"other bytes")
    elif what == "expires":
        objects.expire(key, 'rule-id="all"')
    else:
        objects.move(key, "GLACIER")
    said = {
        "gone": "is gone",
        "replaced": "is not the certified version",
        "expires": "has an expiration date",
        "archived": "is in an archive class that no broker can read",
    }
    found = asker.judged()
    told = [one for one in refused(found) if one.startswith(("the data obj", "the index obj"))]
    assert told[0] == f"the {name} object {said[what]}"
    assert (getattr(found.copy, name) is None) == (what == "gone")
    assert getattr(found.copy, f"{name}_reads") == (what in ("replaced", "expires"))
    assert getattr(found.copy, "index_reads" if name == "data" else "data_reads")
    other = "index" if name == "data" else "data"
    assert not any(one.startswith(f"the {other} object is") for one in told)


def test_an_index_that_cannot_be_read_has_no_digest(asker, scene, due):
    scene.world.objects.move(due.index.key, "GLACIER")
    look = asker.look()
    assert look.index_body is None
    assert look.row.index_sha256 == ""


def rename_bucket(context):
    [bucket] = [one for one in context.driverMetadata.properties if one.key == "bucket"]
    bucket.value = "elsewhere"


def forget_bucket(context):
    kept = [one for one in context.driverMetadata.properties if one.key != "bucket"]
    del context.driverMetadata.properties[:]
    context.driverMetadata.properties.extend(kept)


def test_a_context_that_names_another_bucket_says_so(asker, scene):
    edit_context(scene, rename_bucket)
    place = "place differs: its context names bucket 'elsewhere', ours is 'sim-bucket'"
    assert place in refused(asker.judged())


def test_a_context_that_names_no_bucket_is_read_from_where_its_broker_looks(asker, scene):
    edit_context(scene, forget_bucket)
    assert not any(one.startswith("place differs") for one in refused(asker.judged()))


def test_a_copy_that_was_certified_in_another_bucket_says_so(asker):
    look = in_record("certificate", bucket="elsewhere")(asker.look())
    place = "place differs: its copy is in bucket 'elsewhere', ours is 'sim-bucket'"
    assert place in refused(asker.judged_by(look))


def test_where_brokers_do_not_say_where_they_look_nothing_is_known(asker, scene):
    def silent(_topic):
        raise BrokerError("no answer")

    scene.broker.effective_offload_policies = silent
    found = asker.judged().topic
    assert found.place_differs is None
    assert found.cannot_read is None


# ----- a second look in the same run


class Suites:
    """Counts how often ours are run."""

    def __init__(self, asker):
        self.runs, really = 0, asker.stack.judge_ledgers

        def judge(rows):
            self.runs += 1
            return really(rows)

        asker.stack = replace(asker.stack, judge_ledgers=judge)


@pytest.fixture
def suites(asker):
    return Suites(asker)


def look_twice(asker, between, ledger_id=0):
    first = asker.evidence(ledger_id)
    between()
    return first, asker.evidence(ledger_id, before={ledger_id: first})


def test_what_is_as_it_was_is_not_judged_again(asker, scene, suites):
    first, second = look_twice(asker, lambda: scene.wait(5))
    assert suites.runs == 1
    assert second.verdicts is first.verdicts
    assert second.judged.suites.passed


def test_records_that_went_meanwhile_are_judged_anew(asker, scene, suites):
    _first, second = look_twice(asker, lambda: lose(scene, "attempts"))
    assert suites.runs == 2
    assert not second.judged.suites.passed


def test_an_index_that_was_written_again_is_judged_anew(asker, scene, suites, due):
    """The same bytes: only its time differs, and only what the index suite is told is another
    thing.
    """

    def write_again():
        body, metadata = scene.world.objects.peek(due.index.key)
        scene.wait(5)
        scene.world.objects.put(due.index.key, body, metadata=metadata)

    look_twice(asker, write_again)
    assert suites.runs == 2


def test_a_ledger_that_no_suite_is_asked_about_may_be_looked_at_twice(asker, suites):
    _first, second = look_twice(asker, lambda: None, ledger_id=1)
    assert suites.runs == 0
    assert not second.judged.suites.passed


def test_users_suites_are_asked_each_time(asker, suites, monkeypatch):
    """They may look at the clock."""
    asker.stack = replace(asker.stack, user_suites=(object(),))
    asked = []

    def judge(rows, _suites):
        asked.append(rows)
        return {}

    monkeypatch.setattr(suite_evidence, "validate_user_suites", judge)
    look_twice(asker, lambda: None)
    assert len(asked) == 2
