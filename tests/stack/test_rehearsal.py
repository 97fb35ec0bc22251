"""Ledgers of which a broker shows no entry over REST are published, released and read."""

import random

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.live_topic import read_payloads, send_payloads
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


def test_a_ledger_of_pieces_and_one_of_closed_entries_go_all_the_way(cluster, key):
    large = [random.Random(n).randbytes(12_000_000) + bytes(9) for n in (1, 2)]
    small = [f"{n} ".encode() * 100 for n in range(CLOSED.messages)]

    def send(spec, payloads, name, **how):
        topic = f"persistent://{spec.topic}"
        how = {"chunked": False, **how}
        send_payloads(cluster.endpoints, topic, payloads, name=name, **how)

    send(PIECES, large, "pieces", chunked=True, compression="LZ4")
    send(CLOSED, small, "closed", compression="LZ4", key=key)
    send(BOTH, small[:1], "closed", compression="LZ4", key=key)
    send(BOTH, [b"open"], "open")
    send(BOTH, small[1:2], "closed", compression="LZ4", key=key)
    sent = {PIECES: large, CLOSED: small, BOTH: [small[0], b"open", small[1]]}
    for spec, payloads in sent.items():
        cluster.seal(spec)
        assert read_payloads(cluster.endpoints, f"persistent://{spec.topic}", key=key) == payloads
        ledger_ids = cluster.ledger_ids(spec)
        assert len(ledger_ids) == 1
        [outcome] = cluster.offload(ledger_ids)
        assert outcome.published is not None
        cluster.release(spec, ledger_ids)
        cluster.require_gone_from_bookies(ledger_ids)
        assert read_payloads(cluster.endpoints, f"persistent://{spec.topic}", key=key) == payloads
