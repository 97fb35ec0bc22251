"""Ledgers of which a broker shows no entry over REST are published, released and read."""

import random

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.live_topic import client_of, send_payloads
from tests.support.tiered_cluster import tiered_cluster
from tiering_assets.resources.devstack.traffic import TopicSpec

pytestmark = pytest.mark.stack
PIECES = TopicSpec(topic="public/default/rehearsed-pieces", messages=2, payload_bytes=0)
CLOSED = TopicSpec(topic="public/default/rehearsed-closed", messages=40, payload_bytes=0)
BOTH = TopicSpec(topic="public/default/rehearsed-both", messages=3, payload_bytes=0)


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        yield connected


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """What opens and closes payloads: a pair of RSA keys, as consumers and producers have them."""
    folder, made = tmp_path_factory.mktemp("keys"), rsa.generate_private_key(65537, 2048)
    public, private = folder / "public.pem", folder / "private.pem"
    pem = serialization.Encoding.PEM
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(made.public_key().public_bytes(pem, kind))
    plain, pkcs8 = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    private.write_bytes(made.private_bytes(pem, pkcs8, plain))
    return pulsar.CryptoKeyReader(str(public), str(private))


def read(cluster, spec, key):
    found = []
    with client_of(cluster.endpoints) as client:
        reader = client.create_reader(
            f"persistent://{spec.topic}", pulsar.MessageId.earliest, crypto_key_reader=key
        )
        while reader.has_message_available():
            found.append(reader.read_next(timeout_millis=20_000).data())
        reader.close()
    return found


def close(cluster, spec, key, payloads):
    """Compressed and encrypted, each a message of its own."""
    with client_of(cluster.endpoints) as client:
        producer = client.create_producer(
            f"persistent://{spec.topic}",
            batching_enabled=False,
            compression_type=pulsar.CompressionType.LZ4,
            encryption_key="key",
            crypto_key_reader=key,
        )
        for payload in payloads:
            producer.send(payload)
        producer.close()


def test_a_ledger_of_pieces_and_one_of_closed_entries_go_all_the_way(cluster, key):
    large = [random.Random(n).randbytes(12_000_000) + bytes(9) for n in (1, 2)]
    small = [f"{n} ".encode() * 100 for n in range(CLOSED.messages)]
    topic = f"persistent://{PIECES.topic}"
    send_payloads(cluster.endpoints, topic, large, chunked=True, name="pieces", compression="LZ4")
    close(cluster, CLOSED, key, small)
    close(cluster, BOTH, key, small[:1])
    send_payloads(
        cluster.endpoints, f"persistent://{BOTH.topic}", [b"open"], chunked=False, name="open"
    )
    close(cluster, BOTH, key, small[1:2])
    sent = {PIECES: large, CLOSED: small, BOTH: [small[0], b"open", small[1]]}
    for spec, payloads in sent.items():
        cluster.seal(spec)
        assert read(cluster, spec, key) == payloads
        ledger_ids = cluster.ledger_ids(spec)
        assert len(ledger_ids) == 1
        [outcome] = cluster.offload(ledger_ids)
        assert outcome.published is not None
        cluster.release(spec, ledger_ids)
        cluster.require_gone_from_bookies(ledger_ids)
        assert read(cluster, spec, key) == payloads
