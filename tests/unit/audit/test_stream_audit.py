"""Both checkers over streams of a simulated topic: sound ones are silent, each damage is named."""

from dataclasses import replace

import pytest

from tests.support.audited_streams import StreamsBucket
from tests.support.stream_scene import StreamScene
from tests.support.two_checkers import kinds, second_findings, tool
from tests.unit.audit.stream_damages import DAMAGES, flip, skipping
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.audit_damage import damaged_copies
from tiering_assets.ground.signing import make_key
from tiering_assets.records import keys
from tiering_assets.records.signature import Signer
from tiering_assets.records.stream_models import SegmentOffloaded
from tiering_assets.resources.errors import ObjectStoreError

PEOPLE = "persistent://t/ns/orders"
OF_ONE_RECORD = {"record_damaged", "schema_unknown", "record_misplaced", "record_in_future"}


@pytest.fixture
def bucket():
    return StreamsBucket()


def test_of_sound_streams_nothing_is_said(bucket):
    for deep in (False, True):
        assert bucket.both(deep=deep) == ([], [])
    report = bucket.audit()
    assert report.segments == 6
    assert len([*bucket.world.objects.list_objects(bucket.full(keys.STREAMS))]) == (
        report.stream_records
    )
    assert bucket.beside(2, "failed") != []


def test_a_stream_without_a_segment_is_sound():
    assert StreamScene().chain().newest is None
    scene = StreamScene()
    found = audit_store(scene.world.objects, scene.stack.settings, in_flight_s=0.0)
    assert found.findings == []
    assert second_findings(scene.world.objects, scene.stack.instance) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_by_both_and_named(bucket, name):
    damage = DAMAGES[name]
    key = damage.key(bucket)
    damage.do(bucket)
    ours, second = bucket.both()
    assert kinds(ours) == kinds(second)
    ledger = {"first": bucket.first, "second": bucket.second, "third": bucket.third, "zero": 0}
    expected = (damage.kind, ledger.get(damage.ledger or ""), key)
    named = [one for one in ours if (str(one.kind), one.ledger_id, one.key) == expected]
    assert any(damage.what in one.what for one in named), [str(one) for one in ours]
    theirs = [o for o in second if (o["kind"], o["ledger_id"], o["key"]) == expected]
    assert theirs
    if damage.segment == 0:
        return  # a key that no record has says nothing of a segment
    whose = f"stream {bucket.old}"
    whose = whose if damage.segment is None else f"segment {damage.segment} of {whose}"
    whose += ": " if damage.kind in OF_ONE_RECORD else f" of {PEOPLE}: "
    for what in [*(one.what for one in named), *(one["what"] for one in theirs)]:
        assert what.startswith(whose)


def test_what_was_skipped_is_no_gap_where_the_record_says_so_exactly(bucket):
    skipping(bucket, to_entry=7)
    ours, second = bucket.both(deep=False)
    assert [str(one) for one in ours if one.key == bucket.link(4)] == []
    assert [one for one in second if one["key"] == bucket.link(4)] == []


def test_a_damaged_segment_is_no_damaged_copy_of_a_ledger(bucket):
    """What is recorded of that would keep its ledger from its release, and heal nothing."""
    bucket.rot(bucket.data(1), flip(150))
    report = bucket.audit()
    assert kinds(report.findings) == {("block_differs", bucket.first)}
    assert damaged_copies(report) == {}


def test_streams_are_judged_in_an_audit_of_everything_alone(bucket):
    bucket.lose(bucket.opened)
    chosen = audit_store(bucket.world.objects, bucket.stack.settings, ledger_ids=[bucket.first])
    assert (kinds(chosen.findings), chosen.segments) == ({("record_missing", bucket.first)}, 0)


class _Listing:
    """A store whose listing leaves out keys, as one does that was made a moment before."""

    def __init__(self, objects, late):
        self._objects, self._late = objects, late

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def list_objects(self, prefix="", **how):
        found = self._objects.list_objects(prefix, **how)
        return (one for one in found if one.key not in self._late)


@pytest.mark.parametrize("which", ["attempt", "offloaded"])
def test_what_came_since_it_was_listed_is_not_missed(bucket, which):
    late = bucket.full(bucket.attempt(4) if which == "attempt" else bucket.offloaded(2))
    store = _Listing(bucket.world.objects, {late})
    ours = audit_store(store, bucket.stack.settings, in_flight_s=0.0).findings
    second = second_findings(store, bucket.stack.instance)
    missed = [one.key for one in ours if one.kind == "record_missing"]
    assert (missed, [o for o in second if o["kind"] == "record_missing"]) == ([], [])


class _Silent:
    """A store that gives no answer about some keys."""

    def __init__(self, objects, keys_):
        self._objects, self._keys = objects, keys_

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def head(self, key, **how):
        self._ask(key)
        return self._objects.head(key, **how)

    def get(self, key, **how):
        self._ask(key)
        return self._objects.get(key, **how)

    def _ask(self, key):
        if key in self._keys:
            raise ObjectStoreError("no answer")


@pytest.mark.parametrize("name", ["link", "offloaded", "data", "index"])
def test_where_the_store_is_silent_only_that_is_said(bucket, name):
    key = getattr(bucket, name)(2)
    full = key if name in ("data", "index") else bucket.full(key)
    store = _Silent(bucket.world.objects, {full})
    ours = audit_store(store, bucket.stack.settings, deep=True, in_flight_s=0.0).findings
    second = second_findings(store, bucket.stack.instance, deep=True)
    assert {(str(one.kind), one.key) for one in ours} == {("unreadable", key)}
    assert {(one["kind"], one["key"]) for one in second} == {("unreadable", key)}
    assert kinds(ours) == kinds(second)
    assert all("segment 2 of stream" in one.what for one in ours)
    assert all("segment 2 of stream" in one["what"] for one in second)


def test_signatures_count_where_public_keys_are_given(bucket, tmp_path):
    made, other = make_key(tmp_path / "ours"), make_key(tmp_path / "theirs")
    settings = replace(bucket.stack.settings)
    settings = replace(settings, sign=replace(settings.sign, public_key_files=str(made.public)))
    public = (tool.public_key_of(made.public.read_text()),)
    unsigned = {
        (one.record.ledgers[0].ledger_id, one.key)
        for number in (1, 2, 4, 5)
        for one in [bucket.stack.book.require(SegmentOffloaded, bucket.offloaded(number))]
    }

    def said():
        ours = bucket.audit(settings=settings).findings
        second = second_findings(bucket.world.objects, bucket.stack.instance, public_keys=public)
        found = {(one.ledger_id, one.key) for one in ours if one.kind == "unsigned"}
        assert {(o["ledger_id"], o["key"]) for o in second if o["kind"] == "unsigned"} == found
        return {one for one in found if bucket.old in one[1]}

    assert said() == unsigned
    for number, key in ((1, made), (2, other)):
        body = bucket.body(bucket.offloaded(number))
        signature = Signer(key.private.read_bytes()).sign(body)
        bucket.put(bucket.offloaded(number), body | {"signature": signature})
    assert said() == {one for one in unsigned if one[1] != bucket.offloaded(1)}
    bucket.change(bucket.offloaded(1), lambda r: r.update(seconds=9.0))
    assert said() == unsigned


class _Counting:
    def __init__(self, objects):
        self._objects, self.asked = objects, 0

    def __getattr__(self, name):
        def ask(*args, **how):
            self.asked += 1
            return getattr(self._objects, name)(*args, **how)

        return ask if callable(getattr(self._objects, name)) else getattr(self._objects, name)


def test_requests_grow_with_the_records_and_no_faster():
    def asked(segments):
        scene = StreamScene()
        for _ in range(segments):
            scene.write(b"x")
            scene.cut()
        counting = _Counting(scene.world.objects)
        report = audit_store(counting, scene.stack.settings, in_flight_s=0.0)
        assert (report.findings, report.segments) == ([], segments)
        return counting.asked

    # of a segment: link, attempt and certificate, both objects, and the page that names them
    assert asked(12) - asked(6) == 6 * 6
