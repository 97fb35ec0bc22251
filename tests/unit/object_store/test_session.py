"""Clients of a process share what reading S3's model costs, and never each other's credentials."""

from tiering_assets.resources.object_store.s3_client import S3Connection
from tiering_assets.resources.settings import StoreSettings


def client_of(**keys):
    settings = StoreSettings(bucket="b", endpoint="http://127.0.0.1:1", region="us-east-1", **keys)
    return S3Connection(settings, None)._client()


def loader_of(client):
    return client._loader


def keys_of(client):
    credentials = client._request_signer._credentials
    return None if credentials is None else (credentials.access_key, credentials.secret_key)


def test_the_model_is_read_once_and_each_store_has_a_client_of_its_own():
    one, other = (client_of(access_key="a", secret_key="b") for _ in range(2))
    assert one is not other
    assert loader_of(one) is loader_of(other)


def test_other_keys_are_other_credentials():
    assert keys_of(client_of(access_key="a", secret_key="b")) == ("a", "b")
    assert keys_of(client_of(access_key="a", secret_key="c")) == ("a", "c")


def test_what_the_environment_names_is_asked_of_it_each_time(monkeypatch):
    for key in ("first", "second"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        assert keys_of(client_of()) == (key, "s")
