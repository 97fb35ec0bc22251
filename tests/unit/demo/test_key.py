"""The demo signs by a key of its own, and says so; its settings and its jobs' are the same."""

from types import SimpleNamespace

import pytest

from tiering_assets.demo.run import _own_key, demo_environment, demo_settings
from tiering_assets.ground.signing import load_public_keys, load_signer
from tiering_assets.release.reread import reread_possible
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings


@pytest.fixture
def said():
    return []


@pytest.fixture
def key(tmp_path, said):
    return _own_key(tmp_path / "keys", said.append)


@pytest.fixture
def stack():
    return SimpleNamespace(settings=Settings)


def test_a_demos_key_is_told_in_a_line(key, said, tmp_path):
    [line] = said
    assert key.key_id in line
    assert str(tmp_path / "keys") in line


def test_what_it_signs_counts_and_nothing_is_read_again(key, stack):
    settings = demo_settings(stack, key)
    signer = load_signer(settings)
    assert signer is not None
    assert load_public_keys(settings).key_ids == (signer.key_id,) == (key.key_id,)
    assert not reread_possible(settings)


def test_the_jobs_have_the_same_settings(key, stack):
    found = load_settings(environ=demo_environment(stack, key)).settings
    said = demo_settings(stack, key)
    assert (found.sign, found.release, found.objectives) == (
        said.sign,
        said.release,
        said.objectives,
    )


def test_each_demo_has_another_key(key, tmp_path, said):
    assert _own_key(tmp_path / "keys", said.append).key_id != key.key_id
