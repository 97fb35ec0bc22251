"""What another client is given: the key pair of settings, else what boto3 finds, else an error."""

from collections import namedtuple
from types import SimpleNamespace

import boto3
import pytest

from tiering_assets.resources.errors import SettingsError
from tiering_assets.resources.object_store.s3_client import credentials_of
from tiering_assets.resources.settings import StoreSettings

Frozen = namedtuple("Frozen", "access_key secret_key token")


@pytest.fixture
def found(monkeypatch):
    """What boto3 finds."""

    def say(credentials):
        session = SimpleNamespace(get_credentials=lambda: credentials)
        monkeypatch.setattr(boto3.session, "Session", lambda: session)

    return say


def frozen(*pair):
    return SimpleNamespace(get_frozen_credentials=lambda: Frozen(*pair))


def test_the_settings_come_first(found):
    found(frozen("c", "d", "t"))
    assert credentials_of(StoreSettings(access_key="a", secret_key="b")) == ("a", "b", None)


def test_else_those_that_boto3_finds(found):
    found(frozen("c", "d", "t"))
    assert credentials_of(StoreSettings()) == ("c", "d", "t")


@pytest.mark.parametrize("credentials", [None, frozen("", "d", None), frozen("c", "", None)])
def test_without_a_whole_pair_it_is_an_error(found, credentials):
    found(credentials)
    with pytest.raises(SettingsError, match="no credentials of the store"):
        credentials_of(StoreSettings())
