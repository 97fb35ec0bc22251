"""Both checkers on the real store: silent on what a real release left, agreed on what was tampered
with.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from datetime import timedelta
from struct import unpack_from
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.support.audited_bucket import put_chain
from tests.support.offload_policies import offload_policies
from tests.support.rewritten_records import raw, restored, rewrite
from tests.support.tiered_cluster import tiered_cluster
from tests.support.two_checkers import (
    SKEW,
    TOOL,
    kinds,
    of_block,
    of_index,
    of_record,
    places,
    tool,
)
from tiering_assets.audit.audit import audit_store
from tiering_assets.cli.main import run
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate, Publication
from tiering_assets.resources.devstack.traffic import TopicSpec

pytestmark = pytest.mark.stack

CHANGES = 10_000
BUCKET, NAMESPACE = "audited", "public/audited"
SPECS = [TopicSpec(topic=f"{NAMESPACE}/t-{i}", messages=12, payload_bytes=150) for i in (1, 2)]


class Ledger:
    """Keys of one ledger's newest attempt."""

    def __init__(self, steps, ledger_id, uid):
        self.id, self.uid, prefix = ledger_id, uid, steps.book.prefix
        self.attempt = prefix + keys.attempt(ledger_id, uid)
        self.certificate = prefix + keys.certificate(ledger_id, uid)
        self.outcome = prefix + keys.outcome(ledger_id, uid)
        self.intent = prefix + keys.release_intent(ledger_id, uid)
        self.release = prefix + keys.release(ledger_id, uid)
        self.proof = steps.book.require(Certificate, keys.certificate(ledger_id, uid)).record
        self.data, self.index = self.proof.data.key, self.proof.index.key
        topic = keys.publications_of(self.proof.ml_name)
        [self.publication] = [
            prefix + stored.key
            for stored in steps.book.iter_records(Publication, topic)
            if uid in {one.uid for one in stored.record.ledgers}
        ]

    @property
    def records(self):
        return [
            self.attempt,
            self.certificate,
            self.outcome,
            self.publication,
            self.intent,
            self.release,
        ]


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, bucket=BUCKET) as connected:
        policies = {
            **offload_policies(connected.endpoints),
            "s3ManagedLedgerOffloadBucket": BUCKET,
        }
        connected.make_namespace(NAMESPACE, offloadPolicies=policies)
        yield connected


@pytest.fixture(scope="module")
def released(cluster):
    """One released ledger of each of two topics."""
    found = []
    for spec in SPECS:
        cluster.fill(spec)
        [ledger_id, *_] = ids = cluster.ledger_ids(spec)
        cluster.offload(ids)
        cluster.release(spec, ids)
        found.append(Ledger(cluster.steps, ledger_id, cluster.context_uid(spec, ledger_id)))
    return found


@pytest.fixture(scope="module")
def twice(cluster):
    """A ledger of which an older attempt was given up: 950000001."""
    steps = cluster.steps
    older = put_chain(steps.objects, steps.book, 950_000_001, outcome="abandon")
    newer = put_chain(steps.objects, steps.book, 950_000_001)
    return older, newer


@pytest.fixture(scope="module")
def audit(cluster):
    """Both checkers over some ledgers: their findings."""
    steps, store = cluster.steps, cluster.steps.settings.store
    client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=Config(max_pool_connections=2),
    )

    def both(*ledger_ids):
        ours = audit_store(
            steps.objects,
            steps.settings,
            ledger_ids=ledger_ids or None,
            instance=steps.instance,
            deep=True,
            in_flight_s=0.0,
        )
        check = tool.Check(
            tool.Bucket(client, store.bucket),
            steps.instance,
            deep=True,
            skew=SKEW,
            in_flight=timedelta(0),
            public_keys=[],
            tell=lambda _line: None,
        )
        check.run(list(ledger_ids) or None)
        assert check.counts["objects"] == ours.objects
        return ours.findings, check.findings

    yield both
    client.close()


def flipped(body, at):
    changed = bytearray(body)
    changed[at] ^= 0x01
    return bytes(changed)


def certificate_byte(objects, one, _two):
    body = raw(objects, one.certificate)
    objects.put(one.certificate, flipped(body, body.index(b'"entries"') + 11))


def swapped(objects, one, two):
    mine, theirs = raw(objects, one.certificate), raw(objects, two.certificate)
    objects.put(one.certificate, theirs)
    objects.put(two.certificate, mine)


def other_content(objects, one, _two):
    found = objects.get(one.data)
    objects.put(one.data, random.Random(1).randbytes(found.head.size), metadata=found.head.metadata)


def object_byte(part):
    def change(objects, one, _two):
        key = getattr(one, part)
        found = objects.get(key)
        objects.put(key, flipped(found.body, -3), metadata=found.head.metadata)

    return change


def truncated(objects, one, _two):
    found = objects.get(one.data)
    objects.put(one.data, found.body[:-20], metadata=found.head.metadata)


CASES = {
    "a byte of the certificate": (certificate_byte, "record_damaged"),
    "swapped with another ledger's": (swapped, "record_misplaced"),
    "dated in the future": (
        lambda o, one, _two: rewrite(o, one.certificate, verified_at="2999-01-01T00:00:00Z"),
        "record_in_future",
    ),
    "a schema of the future": (
        lambda o, one, _two: rewrite(o, one.outcome, schema="tierkeeper/outcome/2"),
        "schema_unknown",
    ),
    "a certificate with other facts": (
        lambda o, one, _two: rewrite(o, one.certificate, payload_bytes=1),
        "certificate_inconsistent",
    ),
    "object truncated": (truncated, "block_differs"),
    "object byte": (object_byte("data"), "block_differs"),
    "index byte": (object_byte("index"), "index_differs"),
    "another version of the same size": (other_content, "object_differs"),
    "data object gone": (lambda o, one, _two: o.delete(one.data), "object_missing"),
    "release removed": (lambda o, one, _two: o.delete(one.release), "release_unfinished"),
    "intent removed": (lambda o, one, _two: o.delete(one.intent), "release_broken"),
    "publication removed": (lambda o, one, _two: o.delete(one.publication), "record_missing"),
    "attempt removed": (lambda o, one, _two: o.delete(one.attempt), "record_missing"),
    "abandoned, yet published": (
        lambda o, one, _two: rewrite(o, one.outcome, outcome="abandon"),
        "outcome_conflict",
    ),
    "published without waiting": (
        lambda o, one, _two: rewrite(o, one.intent, deletion_lag_s=1e9),
        "release_broken",
    ),
}


def test_a_real_release_leaves_nothing_to_find(released, audit):
    ours, theirs = audit(*(one.id for one in released))
    assert (ours, theirs) == ([], [])


@pytest.mark.parametrize("case", CASES)
def test_both_find_what_was_tampered_with(cluster, released, audit, case):
    tamper, expected = CASES[case]
    one, two = released
    objects = cluster.steps.objects
    with restored(objects, *one.records, *two.records, one.data, one.index):
        tamper(objects, one, two)
        ours, theirs = audit(one.id, two.id)
        assert (expected, one.id) in kinds(ours)
        assert kinds(ours) == kinds(theirs)
        assert {f.uid for f in ours} <= {one.uid, two.uid, None}
    assert audit(one.id, two.id) == ([], [])


def test_what_may_have_been_meant_as_a_hold_is_told_by_both(cluster, released, audit):
    steps = cluster.steps
    key = f"{steps.book.prefix}holds/topics/orders.json"
    assert key.removeprefix(steps.book.prefix) not in {f.key for f in audit()[0]}
    steps.objects.put(key, b"{}")
    try:
        ours, theirs = audit()
        [one] = [f for f in ours if f.key == "holds/topics/orders.json"]
        assert one.kind == "record_misplaced"
        assert "possibly meant as a hold" in one.found
        [other] = [f for f in theirs if f["key"] == "holds/topics/orders.json"]
        assert other["kind"] == "record_misplaced"
        assert "possibly meant as a hold" in other["found"]
    finally:
        steps.objects.delete(key)


def test_a_certificate_of_an_older_attempt_is_in_the_wrong_place(cluster, twice, audit):
    steps, (older, newer) = cluster.steps, twice
    assert audit(950_000_001) == ([], [])
    key = steps.book.prefix + newer.stored[Certificate].key
    with restored(steps.objects, key):
        theirs_key = steps.book.prefix + older.stored[Certificate].key
        steps.objects.put(key, raw(steps.objects, theirs_key))
        ours, theirs = audit(950_000_001)
        assert kinds(ours) == kinds(theirs) == {("record_misplaced", 950_000_001)}
        assert {f.uid for f in ours} == {newer.uid}


def test_the_command_needs_no_cluster_and_the_tool_none_of_our_code(
    cluster, released, monkeypatch, capsys
):
    store, one = cluster.steps.settings.store, released[0]
    for name in ("endpoint", "region", "bucket", "access_key", "secret_key"):
        monkeypatch.setenv(f"TIERKEEPER_STORE_{name.upper()}", getattr(store, name))
    monkeypatch.setenv("TIERKEEPER_METADATA_STORE", "zk:127.0.0.1:1")
    monkeypatch.setenv("TIERKEEPER_BROKER_ADMIN_URL", "http://127.0.0.1:1")
    command = ["audit", "verify", str(one.id), "--deep", "--json"]
    assert run(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["result"]) == ("tierkeeper/audit-verify/1", "ok")
    assert said["report"]["bytes_read"] == one.proof.data.size + one.proof.index.size

    arguments = ["--bucket", store.bucket, "--endpoint", store.endpoint, "--ledger", str(one.id)]
    environment = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true"}
    environment |= {
        "AWS_ACCESS_KEY_ID": store.access_key,
        "AWS_SECRET_ACCESS_KEY": store.secret_key,
    }

    def check():
        ended = subprocess.run(
            [sys.executable, "-I", str(TOOL), *arguments, "--deep", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, json.loads(ended.stdout)

    assert check() == (0, check()[1])
    with restored(cluster.steps.objects, one.outcome):
        rewrite(cluster.steps.objects, one.outcome, outcome="abandon")
        assert run(command[:-1]) == 1
        assert f"ledger {one.id}, attempt {one.uid}" in capsys.readouterr().out
        code, document = check()
        assert code == 1
        assert {f["ledger_id"] for f in document["findings"]} == {one.id}
    wrong = [sys.executable, "-I", str(TOOL), "--bucket", "no-such-bucket-here", *arguments[2:4]]
    assert subprocess.run(wrong, env=environment, capture_output=True, check=False).returncode == 2


def entry_at(block, body, at):
    """(entry, whether `at` is in its payload) of a byte of a good block, by docs/formats.md."""
    entry, position = block.first_entry_id, 128
    if at < position:
        return entry, False
    while entry <= block.last_entry_id:
        length = unpack_from(">i", body, position)[0]
        if at < position + 12 + length:
            return entry, at >= position + 12
        position += 12 + length
        entry += 1
    return block.last_entry_id, False


def test_ten_thousand_changed_bytes_are_all_found_and_located(cluster, released, twice):
    """Of the real objects and records, fetched once: changed in memory, judged by both checkers."""
    objects, dice, made = cluster.steps.objects, random.Random(20260102), 0
    prefix = cluster.steps.book.prefix
    at_rest = objects.server_time() + timedelta(seconds=1)
    synthetic = twice[1]
    records = [name.removeprefix(prefix) for one in released for name in one.records]
    records += [stored.key for stored in synthetic.stored.values()]
    bodies = {key: raw(objects, prefix + key) for key in records}
    proofs = [one.proof for one in released] + [synthetic.certificate]
    assert any(len(proof.blocks) > 1 for proof in proofs)
    targets: list[tuple[int, str, Any]] = [
        (len(body), "record", (key, body)) for key, body in bodies.items()
    ]
    for proof in proofs:
        as_json = json.loads(bodies[keys.certificate(proof.ledger.ledger_id, proof.uid)])
        index, data = raw(objects, proof.index.key), raw(objects, proof.data.key)
        targets.append((len(index), "index", (proof, as_json, index)))
        for block in proof.blocks:
            body = data[block.offset : block.offset + block.block_length]
            targets.append((len(body), "block", (proof, as_json, block, body)))
    for _size, what, target in dice.choices(targets, weights=[t[0] for t in targets], k=CHANGES):
        body = target[-1]
        at, flip = dice.randrange(len(body)), dice.randint(1, 255)
        bad = bytearray(body)
        bad[at] ^= flip
        told = f"{what} {target[0] if what == 'record' else target[0].data.key} byte {at} ^ {flip}"
        if what == "record":
            ours, theirs = of_record(target[0], bytes(bad), at_rest)
            assert kinds(ours) == kinds(theirs) != set(), told
        elif what == "index":
            ours, theirs = of_index(target[0], target[1], bytes(bad))
            found = ("index_differs", target[0].ledger.ledger_id)
            assert kinds(ours) == kinds(theirs) == {found}, told
        else:
            proof, as_json, block, _body = target
            ours, theirs = of_block(proof, as_json, block.part_number, bytes(bad))
            assert kinds(ours) == kinds(theirs) == {("block_differs", proof.ledger.ledger_id)}, told
            entry, in_payload = entry_at(block, body, at)
            for said in (places(ours), places(theirs)):
                assert {number for number, _entry in said} == {block.part_number}, told
                named = {one for _number, one in said if one is not None}
                # A wrong length may show only where the next frame should begin.
                assert in_payload or named <= {entry, entry + 1}, told
                # That of the last entry may take in padding, and end where padding goes on.
                assert in_payload or named or entry == block.last_entry_id, told
        made += 1
    assert made == CHANGES
