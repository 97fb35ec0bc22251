"""The audit's judging over a whole simulated bucket: clean is silent, every damage is one of its
kind.
"""

import json
from datetime import datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.audited_bucket import Chain, put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.two_checkers import kinds, of_block, of_index, of_record, places
from tiering_assets.audit.audit import audit_store, find_instance
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys, models
from tiering_assets.records.signature import record_digest
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.object_store import records as stored_records
from tiering_assets.resources.settings import Settings

KINDS = (
    models.Attempt,
    models.Certificate,
    models.Outcome,
    models.Publication,
    models.ReleaseIntent,
    models.Release,
)


def raw(store, key):
    found = store.get(key)
    assert found is not None
    return found.body


class Bucket:
    """Two released ledgers and an abandoned attempt; `audit` says what is wrong now."""

    def __init__(self):
        self.store = SimulatedObjectStore()
        self.book = RecordBook(self.store, "inst")
        self.one, self.two = (put_chain(self.store, self.book, i) for i in (41, 42))
        self.given_up = put_chain(self.store, self.book, 43, outcome="abandon")

    def audit(self, **options):
        options = {"deep": True, "in_flight_s": 0.0} | options
        return audit_store(self.store, Settings(), **options).findings

    def full(self, chain: Chain, kind):
        return self.book.prefix + chain.stored[kind].key

    def body(self, key):
        return json.loads(raw(self.store, key))

    def put(self, key, body):
        """A record with a digest that fits: only links and facts can give it away."""
        whole = {k: v for k, v in body.items() if k != "digest"}
        whole["digest"] = record_digest(whole)
        self.store.overwrite(key, stored_records.encode_record(whole))

    def change(self, chain, kind, **values):
        key = self.full(chain, kind)
        self.put(key, {**self.body(key), **values})


@pytest.fixture
def bucket():
    return Bucket()


def test_what_is_as_it_was_written_has_no_findings(bucket):
    assert bucket.audit() == []
    assert bucket.audit(ledger_ids=[41]) == []
    bucket.store.delete(bucket.given_up.certificate.data.key)  # clean-up took it
    assert bucket.audit() == []


def test_a_ledger_without_records_and_a_bucket_without_instance_are_told(bucket):
    assert kinds(bucket.audit(ledger_ids=[99])) == {("record_missing", 99)}
    assert find_instance(bucket.store) == "inst"
    bucket.store.put(f"{keys.PROBES}1/2", b"a doctor's, just now")
    assert find_instance(bucket.store) == "inst"
    RecordBook(bucket.store, "other").create(
        keys.hold(1),
        models.Hold(ledger_id=1, reason="r", author="a", held_at=bucket.store.server_time()),
    )
    with pytest.raises(RefusedError, match="several instances"):
        bucket.audit()
    assert bucket.audit(instance="inst") == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_a_record_that_is_gone_is_missed_by_its_successor(bucket, kind):
    bucket.store.delete(bucket.full(bucket.one, kind))
    found = kinds(bucket.audit())
    last = kind is models.Release
    assert ("release_unfinished" if last else "record_missing", 41) in found or (
        kind is models.ReleaseIntent and ("release_broken", 41) in found
    )
    assert {ledger for _kind, ledger in found} == {41}


def test_a_release_may_be_under_way_for_a_while(bucket):
    bucket.store.delete(bucket.full(bucket.one, models.Release))
    assert bucket.audit(in_flight_s=3600.0) == []
    bucket.store.advance(3601.0)
    assert kinds(bucket.audit(in_flight_s=3600.0)) == {("release_unfinished", 41)}


CHANGES = [
    (models.Attempt, {"schema": "tierkeeper/attempt/2"}, "schema_unknown"),
    (models.Attempt, {"bucket": "another"}, "facts_differ"),
    (models.Attempt, {"object_bytes": 1}, "facts_differ"),
    (models.Certificate, {"entries": 1}, "certificate_inconsistent"),
    (models.Certificate, {"blocks": []}, "certificate_inconsistent"),
    (models.Certificate, {"previous": "0" * 64}, "chain_broken"),
    (models.Certificate, {"verified_at": "2999-01-01T00:00:00Z"}, "record_in_future"),
    (models.Certificate, {"payload_bytes": "many"}, "record_damaged"),
    (models.Outcome, {"outcome": "abandon"}, "outcome_conflict"),
    (models.Outcome, {"previous": "0" * 64}, "chain_broken"),
    (models.Outcome, {"uid": "00000000-0000-4000-8000-000000000000"}, "record_misplaced"),
    (models.Publication, {"node_czxid": 1}, "facts_differ"),
    (models.Publication, {"ledgers": []}, "record_missing"),
    (models.ReleaseIntent, {"previous": "0" * 64}, "chain_broken"),
    (models.ReleaseIntent, {"deletion_lag_s": 9e9}, "release_broken"),
    (models.ReleaseIntent, {"deletion_lag_s": 1e300}, "release_broken"),
    (models.ReleaseIntent, {"published_at": "2020-01-01T00:00:00Z"}, "facts_differ"),
    (models.Release, {"previous": "0" * 64}, "release_broken"),
    (models.Release, {"released_at": "2020-01-01T00:00:00Z"}, "release_broken"),
    (models.Release, {"bytes_released": 1}, "facts_differ"),
]


@pytest.mark.parametrize(
    ("kind", "values", "expected"), CHANGES, ids=lambda v: getattr(v, "__name__", str(v))[:40]
)
def test_a_changed_field_is_found_though_its_digest_fits(bucket, kind, values, expected):
    bucket.change(bucket.one, kind, **values)
    found = kinds(bucket.audit())
    assert expected in {name for name, _ledger in found}
    assert 42 not in {ledger for _kind, ledger in found}


def test_certificates_of_one_ledger_must_agree(bucket):
    again = put_chain(bucket.store, bucket.book, 43, payloads=[b"other"], outcome="abandon")
    assert again.uid != bucket.given_up.uid
    assert kinds(bucket.audit()) == {("facts_differ", 43)}


def test_a_release_after_a_failed_check_is_told(bucket):
    one = bucket.one
    bucket.book.create(
        keys.quarantine(41, one.uid),
        models.Quarantine(
            ledger_id=41,
            uid=one.uid,
            ml_name=one.certificate.ml_name,
            reason="differs",
            found_at=one.certificate.verified_at,
            writer=one.certificate.writer,
            previous=one.stored[models.Attempt].sha256,
        ),
    )
    assert kinds(bucket.audit()) == {("released_quarantined", 41)}


def test_a_request_that_fails_is_a_finding_and_the_audit_goes_on(bucket):
    bucket.store.delete(bucket.full(bucket.two, models.Release))
    bucket.store.fail("get", times=1)
    found = kinds(bucket.audit())
    assert "unreadable" in {name for name, _ledger in found}
    assert ("release_unfinished", 42) in found


CLEAN = Bucket()
CHAIN = CLEAN.one
AT = CLEAN.store.server_time() + timedelta(seconds=5)
PROOF = json.loads(raw(CLEAN.store, CLEAN.full(CHAIN, models.Certificate)))
flips = st.integers(1, 255)


@given(st.sampled_from(KINDS), st.integers(0, 10**6), flips)
def test_any_changed_byte_of_a_record_is_found_by_both(kind, at, flip):
    key = CHAIN.stored[kind].key
    body = bytearray(raw(CLEAN.store, CLEAN.book.prefix + key))
    assert of_record(key, bytes(body), AT) == ([], [])
    body[at % len(body)] ^= flip
    ours, theirs = of_record(key, bytes(body), AT)
    assert ours
    assert kinds(ours) == kinds(theirs)


@given(st.integers(0, 10**6), flips)
def test_any_changed_byte_of_an_index_is_found_by_both(at, flip):
    body = bytearray(CHAIN.index)
    body[at % len(body)] ^= flip
    ours, theirs = of_index(CHAIN.certificate, PROOF, bytes(body))
    assert kinds(ours) == kinds(theirs) == {("index_differs", 41)}


@given(st.sampled_from(CHAIN.certificate.blocks), st.integers(0, 10**6), flips)
def test_any_changed_byte_of_a_block_is_found_by_both_and_located(block, at, flip):
    body = bytearray(CHAIN.data[block.offset : block.offset + block.block_length])
    body[at % len(body)] ^= flip
    ours, theirs = of_block(CHAIN.certificate, PROOF, block.part_number, bytes(body))
    assert kinds(ours) == kinds(theirs) == {("block_differs", 41)}
    assert {number for number, _entry in places(ours) | places(theirs)} == {block.part_number}


@given(st.sampled_from(CHAIN.certificate.blocks), st.integers(0, 10**6))
def test_a_block_that_ends_early_is_found_by_both(block, at):
    body = CHAIN.data[block.offset : block.offset + at % block.block_length]
    ours, theirs = of_block(CHAIN.certificate, PROOF, block.part_number, body)
    assert kinds(ours) == kinds(theirs) == {("block_differs", 41)}


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_never_an_error(body):
    key = CHAIN.stored[models.Certificate].key
    ours, theirs = of_record(key, body, AT)
    assert kinds(ours) == kinds(theirs) != set()
    assert of_index(CHAIN.certificate, PROOF, body)[0]
    assert of_block(CHAIN.certificate, PROOF, 1, body)[0]


def test_the_support_makes_two_blocks_by_the_book():
    assert len(CHAIN.certificate.blocks) > 1
    assert sha256(CHAIN.index).hexdigest() == CHAIN.certificate.index.sha256
    assert isinstance(AT, datetime)
