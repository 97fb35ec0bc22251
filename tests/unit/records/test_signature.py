"""Ed25519 and the record's own digest, checked against the `cryptography` package and hashlib."""

import base64
import json
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.examples import EXAMPLES
from tiering_assets.records.codec import decode_record, encode_record
from tiering_assets.records.models import Certificate
from tiering_assets.records.signature import (
    PublicKeys,
    Signer,
    digest_problem,
    record_digest,
    with_digest,
)
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store import records as stored

FIXTURES = Path(__file__).parent / "fixtures"
CERTIFICATE = next(e for e in EXAMPLES if isinstance(e, Certificate))
SEED = bytes(range(32))


def private_pem(key):
    return key.private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, encryption_algorithm=pem.NoEncryption()
    )


def public_pem(key):
    return key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)


KEY = Ed25519PrivateKey.from_private_bytes(SEED)
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
SIGNER = Signer(private_pem(KEY))
KEYS = PublicKeys([public_pem(OTHER), public_pem(KEY)])
SIGNED = {**encode_record(CERTIFICATE), "signature": SIGNER.sign(encode_record(CERTIFICATE))}


def test_a_signature_is_ed25519_over_the_canonical_bytes_without_it():
    body = {k: v for k, v in SIGNED.items() if k != "signature"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    KEY.public_key().verify(base64.b64decode(SIGNED["signature"]["value"]), text.encode())
    raw = KEY.public_key().public_bytes_raw()
    assert SIGNED["signature"]["key_id"] == sha256(raw).hexdigest()[:16]


def test_a_signature_of_any_accepted_key_counts_with_or_without_a_digest():
    assert KEYS.problem(SIGNED) is None
    assert KEYS.problem(with_digest(SIGNED)) is None
    assert KEYS.problem({**SIGNED, "added_later": 1}) is not None
    newer = {**encode_record(CERTIFICATE), "added_later": 1}
    assert KEYS.problem({**newer, "signature": SIGNER.sign(newer)}) is None


def test_the_signed_certificate_of_this_version_stays_readable():
    """The file is never changed; the key is that of RFC 8032's style of tests, bytes 0 to 31."""
    body = stored.decode_record((FIXTURES / "certificate-1-signed.json").read_bytes(), key="k")
    record = decode_record(Certificate, body, key="k")
    assert record.signature is not None
    assert KEYS.problem(body) is None
    assert digest_problem(body) is None


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        (None, "not signed"),
        ("text", "not signed"),
        ({"key_id": "0" * 16, "value": ""}, "signed by key '0000000000000000', accepted are"),
        ({"key_id": 1, "value": ""}, "signed by key 1"),
        ({"key_id": SIGNER.key_id, "value": "?"}, "does not fit"),
        ({"key_id": SIGNER.key_id, "value": None}, "does not fit"),
        ({"key_id": SIGNER.key_id, "value": base64.b64encode(bytes(64)).decode()}, "does not fit"),
        ({"key_id": ["a"], "value": ""}, "signed by key ['a']"),
    ],
)
def test_anything_else_is_no_signature(signature, said):
    assert said in (KEYS.problem({**SIGNED, "signature": signature}) or "")


def test_a_certificate_of_another_ledger_does_not_borrow_a_signature():
    other = {**SIGNED, "ledger": {**SIGNED["ledger"], "ledger_id": 43}}
    assert "does not fit" in (KEYS.problem(other) or "")


def test_without_keys_nothing_is_asked_for():
    assert not PublicKeys()
    assert PublicKeys().problem(encode_record(CERTIFICATE)) is None


@pytest.mark.parametrize(
    "body",
    [b"", b"secret text", public_pem(KEY), private_pem(generate_private_key(65537, 2048))],
    ids=["empty", "text", "public", "rsa"],
)
def test_what_is_no_private_key_is_refused_without_quoting_it(body):
    with pytest.raises(FormatError) as caught:
        Signer(body)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "body",
    [b"", b"text", private_pem(KEY), public_pem(generate_private_key(65537, 2048))],
    ids=["empty", "text", "private", "rsa"],
)
def test_what_is_no_public_key_is_refused(body):
    with pytest.raises(FormatError):
        PublicKeys([body])


def test_a_digest_is_that_of_the_bytes_without_it():
    body = encode_record(CERTIFICATE)
    assert record_digest(body) == sha256(stored.encode_record(body)).hexdigest()
    assert with_digest(with_digest(body)) == with_digest(body)
    assert digest_problem(body) is None
    assert digest_problem({**body, "digest": "0" * 64}) is not None
    assert digest_problem({**body, "digest": None}) is not None


@given(st.sampled_from(sorted(set(SIGNED) - {"schema"})), st.integers())
def test_any_other_value_breaks_digest_and_signature(field, value):
    changed = {**with_digest(SIGNED), field: value}
    assert digest_problem(changed) is not None
    assert KEYS.problem(changed) is not None
