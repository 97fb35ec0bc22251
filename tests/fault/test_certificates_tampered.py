"""A certificate that is not what it should be releases nothing, with the reason; nothing is
lost.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from struct import pack

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.fault_lab import certificate_of
from tests.support.rewritten_records import raw, record_bytes, restored, rewrite
from tests.support.topic_halves import release_topic
from tests.support.two_checkers import tool
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine, Release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import SettingsError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def published(lab):
    """Two published ledgers whose lag has passed; tests put back what they change."""
    namespace = lab.namespace("tampered")
    topics = [lab.topic(namespace, payload_bytes=300) for _ in range(2)]
    with lab.open() as stack:
        outcomes = offload_batch(stack, [topic.ledger_id for topic in topics])
        found = {o.ledger_id: certificate_of(o) for o in outcomes}
        lab.older(stack)
        yield stack, [(topic, found[topic.ledger_id]) for topic in topics]


def key_of(stack, certificate):
    return stack.book.prefix + keys.certificate(certificate.ledger.ledger_id, certificate.uid)


def assert_waits(stack, topic, uid, reason):
    """Not released, for this reason; the bookie copy is there, unmarked."""
    result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
    assert isinstance(result, NotNow), result
    assert reason in str(result)
    assert stack.ledgers.read(topic.ledger_id) is not None
    assert (
        not stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id).offload.bookkeeper_deleted
    )
    assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None


def older_attempt(stack, certificate):
    """A sound certificate of another attempt of the same ledger, as an earlier run would have
    left.
    """
    body = json.loads(raw(stack.objects, key_of(stack, certificate)))
    return json.loads(
        json.dumps(body).replace(str(certificate.uid), "0" * 8 + str(certificate.uid)[8:])
    )


FORGED: dict[str, tuple[dict[str, object], str]] = {
    "forged": ({"seconds": 0.0}, "the chain of records behind the certificate is broken"),
    "contradicting itself": ({"payload_bytes": 1}, "the certificate contradicts itself"),
    "dated in the future": (
        {"verified_at": "2999-01-01T00:00:00Z"},
        "the certificate is dated in the future",
    ),
    "of a future schema": (
        {"schema": "tierkeeper/certificate/3"},
        "schema 'tierkeeper/certificate/3', expected 'tierkeeper/certificate/2'",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_or_future_certificate_releases_nothing(published, case):
    values, reason = FORGED[case]
    stack, [(topic, certificate), _other] = published
    with restored(stack.objects, key_of(stack, certificate)):
        rewrite(stack.objects, key_of(stack, certificate), **values)
        assert_waits(stack, topic, certificate.uid, reason)


def test_a_certificate_with_one_byte_changed_releases_nothing(published):
    stack, [(topic, certificate), _other] = published
    key = key_of(stack, certificate)
    with restored(stack.objects, key):
        body = raw(stack.objects, key)
        stack.objects.put(key, body.replace(b'"host":"', b'"host":"x', 1))
        assert_waits(stack, topic, certificate.uid, "it was changed after writing")


def test_certificates_swapped_between_ledgers_release_neither(published):
    stack, both = published
    names = [key_of(stack, certificate) for _topic, certificate in both]
    with restored(stack.objects, *names):
        first, second = (raw(stack.objects, name) for name in names)
        stack.objects.put(names[0], second)
        stack.objects.put(names[1], first)
        for (topic, certificate), (_topic, other) in zip(both, reversed(both), strict=True):
            reason = f"the certificate is of ledger {other.ledger.ledger_id}, not of"
            assert_waits(stack, topic, certificate.uid, reason)


def test_a_certificate_of_an_older_attempt_releases_nothing(published):
    stack, [(topic, certificate), _other] = published
    key = key_of(stack, certificate)
    with restored(stack.objects, key):
        stack.objects.put(key, record_bytes(older_attempt(stack, certificate)))
        assert_waits(stack, topic, certificate.uid, "the certificate is of attempt 00000000-")


def forge_all(stack, certificate):
    """One payload byte, and every record after it made to fit: what only the bookies contradict."""
    objects, prefix = stack.objects, stack.book.prefix
    ledger_id, uid = certificate.ledger.ledger_id, certificate.uid
    found = objects.get(certificate.data.key)
    data = bytearray(found.body)
    data[128 + 12 + 20] ^= 1
    written = objects.put(certificate.data.key, bytes(data), metadata=found.head.metadata)
    [block] = json.loads(raw(objects, key_of(stack, certificate)))["blocks"]
    entries, at = sha256(data[:128]), 128
    for entry in range(block["last_entry_id"] + 1):
        length = int.from_bytes(data[at : at + 4], "big")
        entries.update(pack(">iq", length, entry) + data[at + 12 : at + 12 + length])
        at += 12 + length
    block |= {"sha256": sha256(data).hexdigest(), "entries_sha256": entries.hexdigest()}
    body = json.loads(raw(objects, key_of(stack, certificate)))
    whole = sha256(bytes.fromhex(block["sha256"])).hexdigest()
    forged = rewrite(
        objects,
        key_of(stack, certificate),
        blocks=[block],
        data={**body["data"], "etag": written.etag, "sha256": whole},
    )
    outcome = rewrite(objects, prefix + keys.outcome(ledger_id, uid), previous=forged)
    publication = prefix + keys.publication(certificate.ml_name, 1)
    [entry] = json.loads(raw(objects, publication))["ledgers"]
    named = {**entry, "certificate_sha256": forged, "previous": outcome}
    rewrite(objects, publication, ledgers=[named])


def test_without_a_key_a_consistent_forgery_fails_against_the_bookies(lab):
    topic = lab.topic(lab.namespace("forged"), payload_bytes=300)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        lab.older(stack)
        forge_all(stack, certificate)
        lab.older(stack)
        reason = "read again before the release, the copy differs: block 1: entries digest"
        assert_waits(stack, topic, certificate.uid, reason)
        kept = stack.book.read(Quarantine, keys.quarantine(topic.ledger_id, certificate.uid))
        assert kept is not None
        assert "entries digest" in kept.record.reason
        assert_waits(stack, topic, certificate.uid, "a check of this attempt failed")


def key_files(folder, name):
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(
        key.private_bytes(
            pem.Encoding.PEM, pem.PrivateFormat.PKCS8, encryption_algorithm=pem.NoEncryption()
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    )
    return str(private), str(public)


def test_with_a_key_only_its_signature_releases(lab, published, tmp_path):
    private, public = key_files(tmp_path, "ours")
    _private, strange = key_files(tmp_path, "theirs")
    stack, [(unsigned, certificate), _other] = published
    trusting = lab.with_section("sign", private_key_file=private, public_key_files=public)
    keyed = replace(stack, settings=trusting)
    assert_waits(
        keyed, unsigned, certificate.uid, "the certificate does not count: it is not signed"
    )

    topic = lab.topic(lab.namespace("signed"), payload_bytes=300)
    said: list[str] = []
    with lab.open(trusting, narrate=said.append) as signing:
        [outcome] = offload_batch(signing, [topic.ledger_id])
        signed = certificate_of(outcome)
        lab.older(signing)
        body = raw(signing.objects, key_of(signing, signed))
        record = {**json.loads(body), "_body": body}
        with open(public, encoding="ascii") as file:
            assert tool.signed_by(record, [tool.public_key_of(file.read())])

        other = replace(signing, settings=lab.with_section("sign", public_key_files=strange))
        assert_waits(other, topic, signed.uid, "signed by key")
        missing = lab.with_section("sign", public_key_files=str(tmp_path / "none.pem"))
        with pytest.raises(SettingsError, match=r"sign\.public_key_files"):
            release_topic(replace(signing, settings=missing), topic.ml_name, [topic.ledger_id])
        with restored(signing.objects, key_of(signing, signed)):
            forged = {"key_id": json.loads(body)["signature"]["key_id"], "value": "AAAA"}
            rewrite(signing.objects, key_of(signing, signed), signature=forged)
            assert_waits(signing, topic, signed.uid, "does not fit its bytes")
        result = release_topic(signing, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)
    assert not any("no key is configured" in line for line in said)
    lab.readable(topic, reloaded=True)


def test_what_was_put_back_is_released_after_it_was_read_again(lab, published):
    _stack, both = published
    said: list[str] = []
    with lab.open(narrate=said.append) as telling:
        for topic, _certificate in both:
            result = release_topic(telling, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
            assert isinstance(result, Released)
            lab.readable(topic, reloaded=True)
    assert sum("no key is configured: reading 1 ledgers" in line for line in said) == len(both)
