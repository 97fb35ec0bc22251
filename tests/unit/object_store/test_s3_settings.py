"""A store that cannot be meant is refused before anything is connected to."""

from dataclasses import replace

import pytest

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings import StoreSettings

SETTINGS = StoreSettings(bucket="b", endpoint="http://127.0.0.1:9")


def test_a_store_without_a_bucket_is_none():
    with pytest.raises(SettingsError, match=r"store\.bucket is empty"):
        S3ObjectStore(replace(SETTINGS, bucket=""))


@pytest.mark.parametrize("keys", [{"access_key": "a"}, {"secret_key": "s"}])
def test_half_a_pair_of_keys_is_none(keys):
    with pytest.raises(SettingsError, match="set both or neither"):
        S3ObjectStore(replace(SETTINGS, **keys))


@pytest.mark.parametrize("keys", [{}, {"access_key": "a", "secret_key": "s"}])
def test_both_or_neither_are_taken(keys):
    assert S3ObjectStore(replace(SETTINGS, **keys)).bucket == "b"
