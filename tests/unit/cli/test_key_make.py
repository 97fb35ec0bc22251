"""A person's key: two files that sign and check, nothing replaced, no setting changed."""

import json
import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from tiering_assets.cli.main import run
from tiering_assets.ground.signing import load_public_keys, load_signer
from tiering_assets.resources.settings_sources import load_settings


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "new" / "keys"


def made(capsys, directory):
    assert run(["key", "make", str(directory), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_key_signs_by_one_file_and_is_checked_by_the_other(capsys, directory):
    said = made(capsys, directory)
    with open(said["private_key_file"], "rb") as file:
        private = load_pem_private_key(file.read(), None)
    with open(said["public_key_files"], "rb") as file:
        public = load_pem_public_key(file.read())
    assert isinstance(private, Ed25519PrivateKey)
    assert isinstance(public, Ed25519PublicKey)
    public.verify(private.sign(b"text"), b"text")


def test_only_its_owner_reads_the_private_file(capsys, directory):
    said = made(capsys, directory)
    path = directory / "certificates.pem"
    assert said["private_key_file"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_no_file_of_a_key_is_ever_replaced(capsys, directory):
    """What the key signed would count no more."""
    made(capsys, directory)
    files = sorted(directory.iterdir())
    before = [path.read_bytes() for path in files]
    for gone in (None, 0, 1):
        if gone is not None:
            files[gone].unlink()
        assert run(["key", "make", str(directory)]) != 0
        assert "is there" in capsys.readouterr().err
        if gone is not None:
            assert not files[gone].exists()
            files[gone].write_bytes(before[gone])
    assert [path.read_bytes() for path in files] == before


def test_two_keys_differ(capsys, tmp_path):
    first, second = (made(capsys, tmp_path / name) for name in "ab")
    assert first["key_id"] != second["key_id"]


def test_what_it_prints_are_settings_that_use_the_key(capsys, directory, tmp_path):
    assert run(["key", "make", str(directory)]) == 0
    shown = capsys.readouterr().out
    before, _, section = shown.partition("[sign]")
    file = tmp_path / "tierkeeper.toml"
    file.write_text("[sign]" + section)
    settings = load_settings(environ={}, file=file).settings
    signer = load_signer(settings)
    assert signer is not None
    assert load_public_keys(settings).key_ids == (signer.key_id,)
    assert signer.key_id in before
    assert settings.sign.require is False
    assert (directory / "certificates.pem").read_text() not in shown


def test_a_directory_that_cannot_be_made_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert run(["key", "make", str(tmp_path / "file" / "keys")]) == 11
    assert str(tmp_path / "file" / "keys") in capsys.readouterr().err
