"""Certificates of either version are verified by both checkers, and each by its own digest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.audited_bucket import put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tests.support.two_checkers import kinds, of_block, of_record
from tiering_assets.audit.audit import audit_store
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records.models import Certificate
from tiering_assets.resources.settings import Settings

VERSIONS = {"entries": "tierkeeper/certificate/1", "frames": "tierkeeper/certificate/2"}
OTHER = {"entries": "frames", "frames": "entries"}


class Bucket:
    def __init__(self, kind):
        self.store = SimulatedObjectStore()
        self.book = RecordBook(self.store, "inst")
        self.chain = put_chain(self.store, self.book, 41, block_digest=kind)

    def proof(self):
        stored = self.store.get(self.book.prefix + self.chain.stored[Certificate].key)
        assert stored is not None
        return stored, json.loads(stored.body)

    def block(self, number=1):
        block = self.chain.certificate.blocks[number - 1]
        return self.chain.data[block.offset : block.offset + block.block_length]


@pytest.fixture(params=VERSIONS)
def kind(request):
    return request.param


@pytest.fixture
def bucket(kind):
    return Bucket(kind)


def test_it_is_written_as_the_version_that_can_say_it(bucket, kind):
    _stored, proof = bucket.proof()
    assert proof["schema"] == VERSIONS[kind]
    assert proof.get("block_digest") == (None if kind == "entries" else "frames")


def test_both_checkers_find_a_sound_one_sound(bucket):
    stored, proof = bucket.proof()
    key = bucket.chain.stored[Certificate].key
    assert of_record(key, stored.body, stored.head.last_modified) == ([], [])
    for number in range(1, len(bucket.chain.certificate.blocks) + 1):
        said = of_block(bucket.chain.certificate, proof, number, bucket.block(number))
        assert said == ([], [])
    audited = audit_store(bucket.store, Settings(), deep=True, in_flight_s=0.0)
    assert list(audited.findings) == []


def test_both_checkers_find_the_digest_of_the_other_kind_wrong(bucket, kind):
    other = Bucket(OTHER[kind])
    _stored, proof = bucket.proof()
    _other, theirs = other.proof()
    named = {**proof, "schema": theirs["schema"], "block_digest": theirs.get("block_digest")}
    certificate = replace(bucket.chain.certificate, block_digest=OTHER[kind])
    for found in of_block(certificate, named, 1, bucket.block()):
        assert kinds(found) == {("block_differs", 41)}
        assert "entries digest" in str(found)
