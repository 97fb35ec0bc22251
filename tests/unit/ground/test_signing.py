"""Keys come from files; a key that is named and cannot be used stops everything."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tiering_assets.ground.signing import has_public_keys, load_public_keys, load_signer
from tiering_assets.records.codec import encode_record
from tiering_assets.records.models import Hold
from tiering_assets.release.voucher import reread_possible
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import Settings

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


@pytest.fixture
def files(tmp_path):
    private, public, text = tmp_path / "key.pem", tmp_path / "key.pub.pem", tmp_path / "notes"
    private.write_bytes(
        KEY.private_bytes(
            pem.Encoding.PEM, pem.PrivateFormat.PKCS8, encryption_algorithm=pem.NoEncryption()
        )
    )
    public.write_bytes(
        KEY.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    )
    text.write_text("my secret notes")
    return {"private": str(private), "public": str(public), "text": str(text), "gone": "no-such"}


def settings(**sign):
    plain = Settings()
    return replace(plain, sign=replace(plain.sign, **sign))


def test_without_keys_nothing_is_signed_and_every_release_reads_again():
    assert load_signer(settings()) is None
    assert not load_public_keys(settings())
    assert reread_possible(settings())
    off = replace(settings(), release=replace(settings().release, reread_without_key=False))
    assert not reread_possible(off)


def test_a_signature_by_the_private_key_counts_by_the_public_one(files):
    body = encode_record(
        Hold(
            ledger_id=1,
            reason="r",
            author="a",
            held_at=datetime(2026, 1, 2, tzinfo=UTC),
        )
    )
    signer = load_signer(settings(private_key_file=files["private"]))
    assert signer is not None
    both = settings(public_key_files=f" {files['public']} , {files['public']},")
    assert has_public_keys(both)
    assert not reread_possible(both)
    assert load_public_keys(both).problem({**body, "signature": signer.sign(body)}) is None


@pytest.mark.parametrize(
    ("name", "said"), [("gone", "No such file"), ("text", "in PEM"), ("public", "private key")]
)
def test_a_private_key_that_cannot_be_used_is_told_by_its_setting(files, name, said):
    with pytest.raises(SettingsError, match=said) as caught:
        load_signer(settings(private_key_file=files[name]))
    assert str(caught.value).startswith("sign.private_key_file: ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"), [("gone", "No such file"), ("text", "in PEM"), ("private", "public key")]
)
def test_a_public_key_that_cannot_be_used_is_told_by_its_setting(files, name, said):
    wrong = settings(public_key_files=f"{files['public']},{files[name]}")
    with pytest.raises(SettingsError, match=said) as caught:
        load_public_keys(wrong)
    assert str(caught.value).startswith(f"sign.public_key_files: {files[name]}: ")
    assert "secret" not in str(caught.value)
