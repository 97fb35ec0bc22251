"""A key vouches for a copy, or every byte is read again, or its bookie copy stays."""

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.sim_scene import TOPIC, Scene
from tests.support.topic_halves import release_topic
from tiering_assets.audit.audit import audit_store
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.signature import PublicKeys, Signer, with_digest
from tiering_assets.release.voucher import Voucher, reread_possible, voucher_of
from tiering_assets.release.work import Released
from tiering_assets.resources.object_store.records import encode_record
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.descriptors import TaskKind


def private_of(key):
    return key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, encryption_algorithm=pem.NoEncryption()
    )


def public_of(key):
    return key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)


OURS, THEIRS = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
BODY = {"schema": "a-record/1", "ledger": 7}


def signed_by(key, body):
    return {**body, "signature": Signer(private_of(key)).sign(body)}


SIGNED = signed_by(OURS, BODY)
FORGED = {**SIGNED, "ledger": 8}
STRANGE = signed_by(THEIRS, BODY)
STRIPPED_ID = {**BODY, "signature": {**SIGNED["signature"], "key_id": [1]}}
NO_MAP = {**BODY, "signature": "text"}
READING, NOBODY, KEY = Voucher.READING, Voucher.NOBODY, Voucher.KEY


@pytest.mark.parametrize(
    ("body", "required", "free", "without_reading"),
    [
        (SIGNED, KEY, KEY, KEY),
        (BODY, NOBODY, READING, NOBODY),
        (STRANGE, NOBODY, READING, NOBODY),
        (STRIPPED_ID, NOBODY, READING, NOBODY),
        (NO_MAP, NOBODY, READING, NOBODY),
        (FORGED, NOBODY, NOBODY, NOBODY),
    ],
    ids=["signed", "unsigned", "another key", "no key", "no signature", "forged"],
)
def test_who_vouches_for_a_certificate(body, required, free, without_reading):
    strict, lenient = PublicKeys([public_of(OURS)]), PublicKeys([public_of(OURS)], required=False)
    assert voucher_of(strict, body, rereads=True) is required
    assert voucher_of(lenient, body, rereads=True) is free
    assert voucher_of(lenient, body, rereads=False) is without_reading


@pytest.mark.parametrize("body", [SIGNED, BODY, STRANGE, FORGED])
@pytest.mark.parametrize("required", [True, False])
def test_without_keys_no_signature_is_looked_at(body, required):
    none = PublicKeys(required=required)
    assert voucher_of(none, body, rereads=True) is READING
    assert voucher_of(none, body, rereads=False) is Voucher.RECORD


@pytest.mark.parametrize(
    ("public", "require", "rereads", "possible"),
    [
        ("", True, True, True),
        ("", False, True, True),
        ("a.pub", True, True, False),
        ("a.pub", False, True, True),
        ("a.pub", False, False, False),
        ("", True, False, False),
    ],
)
def test_a_release_needs_tasks_where_it_may_have_to_read(public, require, rereads, possible):
    plain = Settings()
    settings = replace(
        plain,
        sign=replace(plain.sign, public_key_files=public, require=require),
        release=replace(plain.release, reread_without_key=rereads),
    )
    assert reread_possible(settings) is possible


# ----- on simulated servers


class Hosts:
    """Hosts of one cluster, each with a key of its own or none."""

    def __init__(self, scene, directory):
        self.scene, self.directory = scene, directory
        self.read: list[set[int]] = []
        self.alter = lambda row: row

    def stack(self, name="release", **sign):
        stack = self.scene.process(name)
        settings = stack.settings
        runner, really = stack.runner, stack.runner.run

        def run(tasks, **how):
            if name == "release":
                kinds = {TaskKind.READ_BACK, TaskKind.READ_SOURCE}
                assert {task.kind for task in tasks} <= kinds
                self.read.append({task.source.ledger_id for task in tasks})
            return [self.alter(row) for row in really(tasks, **how)]

        runner.run = run
        return replace(stack, settings=replace(settings, sign=replace(settings.sign, **sign)))

    def private(self, key):
        return self._file("private", private_of(key), key)

    def public(self, *some):
        return ",".join(self._file("public", public_of(key), key) for key in some)

    def _file(self, kind, body, key):
        path = self.directory / f"{Signer(private_of(key)).key_id}.{kind}"
        path.write_bytes(body)
        return str(path)

    def publish(self, ledger_id, key=None):
        """By a host that signs with this key."""
        sign = {} if key is None else {"private_key_file": self.private(key)}
        [outcome] = offload_batch(self.stack("offload", **sign), [ledger_id])
        assert outcome.state == "published", outcome
        assert outcome.certificate is not None
        return outcome.certificate.record

    def release(self, *ledger_ids, **sign):
        """Results, and the ledgers whose bytes were read again."""
        self.read.clear()
        results = release_topic(self.stack(**sign), TOPIC, ledger_ids)
        return results, set().union(*self.read)

    def rewrite(self, record, change):
        key = self.scene.stack.book.prefix + keys.certificate(record.ledger.ledger_id, record.uid)
        body, metadata = self.scene.world.objects.peek(key)
        found = json.loads(body)
        found.pop("digest", None)
        self.scene.world.objects.put(
            key, encode_record(with_digest(change(found))), metadata=metadata
        )

    def unsigned_findings(self, **sign):
        stack = self.stack(**sign)
        report = audit_store(stack.objects, stack.settings, instance=stack.instance)
        return [one for one in report.findings if one.kind.value == "unsigned"]


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def hosts(scene, tmp_path):
    return Hosts(scene, tmp_path)


def refused(result, why):
    return isinstance(result, NotNow) and any(why in reason for reason in result.reasons)


def test_a_bucket_with_unsigned_certificates_is_refused_or_read_again(scene, hosts):
    """Somebody configures a key only after many copies were certified."""
    hosts.publish(0)
    scene.past_the_lag()
    ours = {"public_key_files": hosts.public(OURS)}
    results, read = hosts.release(0, **ours)
    assert refused(results[0], "does not count: it is not signed")
    assert read == set()
    results, read = hosts.release(0, **ours, require=False)
    assert isinstance(results[0], Released)
    assert read == {0}


def test_an_unsigned_copy_that_differs_is_not_released_by_being_read(scene, hosts):
    record = hosts.publish(0)
    scene.past_the_lag()
    hosts.alter = lambda row: (
        replace(row, sha256="0" * 64) if row.kind is TaskKind.READ_BACK else row
    )
    results, read = hosts.release(0, public_key_files=hosts.public(OURS), require=False)
    assert refused(results[0], "the copy differs")
    assert read == {0}
    assert scene.is_quarantined(0, record.uid)


def test_of_two_hosts_with_two_keys_only_what_the_unknown_one_signed_is_read_again(scene, hosts):
    other = scene.fill(TOPIC)
    hosts.publish(0, OURS)
    hosts.publish(other, THEIRS)
    scene.fill(TOPIC)
    scene.past_the_lag()
    both = {"public_key_files": hosts.public(OURS, THEIRS)}
    ours = {"public_key_files": hosts.public(OURS)}
    results, _read = hosts.release(other, **ours)
    assert refused(results[other], "signed by key")
    results, read = hosts.release(0, other, **ours, require=False)
    assert {type(one) for one in results.values()} == {Released}
    assert read == {other}
    assert hosts.unsigned_findings(**both) == []


def test_whoever_knows_both_keys_reads_neither_again(scene, hosts):
    other = scene.fill(TOPIC)
    hosts.publish(0, OURS)
    hosts.publish(other, THEIRS)
    scene.fill(TOPIC)
    scene.past_the_lag()
    both = hosts.public(OURS, THEIRS)
    results, read = hosts.release(0, other, public_key_files=both, require=False)
    assert {type(one) for one in results.values()} == {Released}
    assert read == set()


def test_what_a_lost_key_signed_is_read_again_and_what_the_new_one_signs_is_not(scene, hosts):
    new = scene.fill(TOPIC)
    hosts.publish(0, THEIRS)
    hosts.publish(new, OURS)
    scene.fill(TOPIC)
    scene.past_the_lag()
    results, read = hosts.release(0, new, public_key_files=hosts.public(OURS), require=False)
    assert {type(one) for one in results.values()} == {Released}
    assert read == {0}


def test_a_wrong_signature_by_a_key_of_ours_is_refused_whatever_is_read(scene, hosts):
    record = hosts.publish(0, OURS)
    hosts.rewrite(record, lambda body: {**body, "seconds": 12.5})
    scene.past_the_lag()
    ours = {"public_key_files": hosts.public(OURS), "require": False}
    results, read = hosts.release(0, **ours)
    assert refused(results[0], "does not fit its bytes")
    assert read == set()
    assert len(hosts.unsigned_findings(**ours)) == 1


def test_a_signature_that_is_taken_away_costs_a_reading_and_nothing_else(scene, hosts):
    record = hosts.publish(0, OURS)
    hosts.rewrite(record, lambda body: {k: v for k, v in body.items() if k != "signature"})
    scene.past_the_lag()
    results, read = hosts.release(0, public_key_files=hosts.public(OURS), require=False)
    # The chain of digests names the certificate as it was.
    assert refused(results[0], "chain of records")
    assert read == set()


@pytest.mark.parametrize("keys_set", [False, True])
def test_who_is_read_again_is_told_why(scene, hosts, keys_set):
    hosts.publish(0)
    scene.past_the_lag()
    said: list[str] = []
    ours = {"public_key_files": hosts.public(OURS), "require": False} if keys_set else {}
    stack = replace(hosts.stack(**ours), narrate=said.append)
    assert isinstance(release_topic(stack, TOPIC, [0])[0], Released)
    why = "no accepted key signed them" if keys_set else "no key is configured"
    assert any(line.startswith(f"{why}: reading 1 ledgers, ") for line in said)


def test_an_audit_asks_for_signatures_only_where_they_are_required(hosts):
    hosts.publish(0)
    public = hosts.public(OURS)
    assert len(hosts.unsigned_findings(public_key_files=public)) == 1
    assert hosts.unsigned_findings(public_key_files=public, require=False) == []
