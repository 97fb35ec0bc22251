"""Doctor proposes a key where none is configured, and makes none."""

from dataclasses import replace

import pytest

from tiering_assets.doctor.signing import check_keys
from tiering_assets.ground.finding import Level
from tiering_assets.ground.signing import make_key
from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.settings import Settings, SignSettings


@pytest.fixture
def ours(tmp_path):
    return make_key(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path):
    return make_key(tmp_path / "theirs")


def asked(rereads=True, private_key_file="", public_key_files=""):
    plain = Settings()
    settings = replace(
        plain,
        sign=SignSettings(
            private_key_file=str(private_key_file), public_key_files=str(public_key_files)
        ),
        release=replace(plain.release, reread_without_key=rereads),
    )
    [found] = check_keys(settings)
    return found


def test_without_a_key_one_is_proposed_and_none_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = asked()
    assert found.level is Level.WARN
    assert "every byte of copy and bookies is read again" in found.text
    assert "tierkeeper key make" in found.next_step
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_read_again_that_is_told_too(tmp_path):
    assert "the certificate alone is believed" in asked(rereads=False).text


def test_a_key_that_signs_and_counts_is_well(ours):
    found = asked(private_key_file=ours.private, public_key_files=ours.public)
    assert found.level is Level.OK
    assert f"key {ours.key_id} signs" in found.text


def test_a_host_that_only_releases_needs_no_private_key(ours):
    found = asked(public_key_files=ours.public)
    assert (found.level, ours.key_id in found.text) == (Level.OK, True)


@pytest.mark.parametrize("known", [True, False])
def test_a_key_that_signs_and_counts_nowhere_is_told(ours, theirs, known):
    accepted = {"public_key_files": theirs.public} if known else {}
    found = asked(private_key_file=ours.private, **accepted)
    assert found.level is Level.WARN
    assert ours.key_id in found.text
    assert (theirs.key_id in found.text) is known
    assert "sign.public_key_files" in found.next_step


def test_a_key_that_cannot_be_used_is_an_error_which_names_its_setting(tmp_path):
    with pytest.raises(SettingsError, match=r"sign\.private_key_file"):
        asked(private_key_file=tmp_path / "none.pem")
