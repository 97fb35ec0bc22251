"""A closed store's client is the next one's, whose meter it asks, and nobody else's."""

import os
from dataclasses import replace

import pytest

from tests.unit.object_store.test_s3_meter import Meter, Server
from tiering_assets.resources.object_store import kept_clients
from tiering_assets.resources.object_store.s3_client import S3Connection
from tiering_assets.resources.settings import StoreSettings

SETTINGS = StoreSettings(bucket="b", endpoint="http://127.0.0.1:1", access_key="a", secret_key="s")


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    monkeypatch.setattr(kept_clients, "_kept", [])


def connection(settings=SETTINGS, *, meter=True):
    return S3Connection(settings, Meter() if meter else None)


def test_the_next_store_takes_the_client_of_a_closed_one_and_two_never_share_one():
    one, two, three = connection(), connection(), connection()
    first = one._client()
    assert two._client() is not first
    one.close()
    assert three._client() is first
    one.close()
    assert one._client() not in (first, two._client())


@pytest.mark.parametrize(
    "other",
    [
        replace(SETTINGS, secret_key="t"),
        replace(SETTINGS, endpoint="http://127.0.0.1:2"),
        replace(SETTINGS, read_timeout_s=1.0),
    ],
    ids=["key", "endpoint", "timeout"],
)
def test_other_settings_are_another_client(other):
    one = connection()
    first = one._client()
    one.close()
    assert connection(other)._client() is not first
    assert connection(meter=False)._client() is not first


def test_what_the_environment_names_is_another_client(monkeypatch):
    one = connection()
    first = one._client()
    one.close()
    monkeypatch.setenv("AWS_PROFILE_OF_TEST", "x")
    assert connection()._client() is not first


def test_another_process_takes_nothing(monkeypatch):
    one = connection()
    first = one._client()
    one.close()
    pid = os.getpid()
    monkeypatch.setattr("os.getpid", lambda: pid + 1)
    two = connection()
    assert two._client() is not first
    monkeypatch.setattr("os.getpid", lambda: pid)
    two.close()
    assert connection()._client() is first
    assert connection()._client() is not two._client()


def test_a_client_without_a_meter_is_not_kept_and_few_are():
    plain = connection(meter=False)
    plain._client()
    plain.close()
    assert kept_clients._kept == []
    many = [connection() for _ in range(20)]
    for one in many:
        one._client()
    for one in many:
        one.close()
    assert len(kept_clients._kept) == kept_clients._KEPT_MAX


def test_requests_ask_the_meter_of_the_store_that_sends_them():
    first, second = Meter(), Meter(slices=4)
    with Server(refusals=0) as server:
        one = server.store(first)
        one.put("k", b"12345678")
        client = one._connection._client()
        one.close()
        two = server.store(second)
        two.put("k", b"12345678")
        assert two._connection._client() is client
        one.put("k", b"12345678")
    assert first.log == ["request", "request"]
    assert second.log == ["request", ("upload", 8), ("upload", 4)]
    assert server.bodies == [b"12345678"] * 3
