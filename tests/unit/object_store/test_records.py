import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.resources.errors import (
    FormatError,
    ObjectConflictError,
    ObjectExistsError,
    ObjectStoreError,
)
from tiering_assets.resources.object_store.records import (
    RECORD_BYTES_MAX,
    RecordStore,
    decode_record,
    encode_record,
)

CLAIM = {"schema": "claim/1", "run_id": "r1", "ledger_id": 7}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.fixture
def objects():
    return SimulatedObjectStore()


@pytest.fixture
def records(objects):
    return RecordStore(objects, "e7c3-instance")


def test_the_bytes_are_canonical():
    body = encode_record({"schema": "x/1", "b": [1, {"d": "ü", "c": None}], "a": True})
    assert body == '{"a":true,"b":[1,{"c":null,"d":"ü"}],"schema":"x/1"}\n'.encode()


@given(fields=st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES, max_size=5))
def test_what_was_encoded_is_decoded(fields):
    record = {**fields, "schema": "x/1"}
    body = encode_record(record)
    assert decode_record(body, key="k") == record
    assert encode_record(dict(reversed(record.items()))) == body


@given(body=st.binary(max_size=80) | VALUES.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_a_record_or_a_format_error_naming_the_key(body):
    try:
        record = decode_record(body, key="claims/9.json")
    except FormatError as error:
        assert "claims/9.json" in str(error)  # noqa: PT017
    else:
        assert decode_record(encode_record(record), key="again") == record


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b'{"schema": 1}',
        b'{"schema": ""}',
        b'{"schema": "x/1", "schema": "y/1"}',
        b'{"schema": "x/1", "n": NaN}',
        b'{"schema": "x/1", "n": 1e999}',
        b'{"schema": "x/1", "n": "\\ud800"}',
        b'{"schema": "x/1"} trailing',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": "x/1"}' + b" " * RECORD_BYTES_MAX,
    ],
)
def test_what_is_no_record_is_a_format_error(body):
    with pytest.raises(FormatError, match="the-key"):
        decode_record(body, key="the-key")


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"schema": 3},
        {"schema": "x/1", 7: "int key"},
        {"schema": "x/1", "n": float("nan")},
        {"schema": "x/1", "b": b"bytes"},
        {"schema": "x/1", "s": "x" * RECORD_BYTES_MAX},
        {"schema": "x/1", "within": {"another": {7: "int key"}}},
        {"schema": "x/1", "listed": [["text", {7: "int key"}]]},
    ],
)
def test_what_json_would_bend_is_refused_before_it_is_written(record):
    with pytest.raises(ValueError, match=r"record|JSON|float"):
        encode_record(record)


def test_a_record_lies_under_the_instance_with_its_digest(objects, records):
    stored = records.create("claims/7.json", CLAIM)
    raw = objects.get("tierkeeper/e7c3-instance/claims/7.json").body
    assert stored.sha256 == hashlib.sha256(raw).hexdigest()
    assert (stored.key, stored.record) == ("claims/7.json", CLAIM)
    assert records.read("claims/7.json") == stored
    assert records.read("claims/8.json") is None


def test_a_record_is_created_once(records):
    records.create("claims/7.json", CLAIM)
    with pytest.raises(ObjectExistsError, match="claim/1"):
        records.create("claims/7.json", {**CLAIM, "run_id": "r2"})
    with pytest.raises(ObjectExistsError):
        records.create_or_same("claims/7.json", {**CLAIM, "run_id": "r2"})
    assert records.read("claims/7.json").record["run_id"] == "r1"


def test_the_same_record_again_is_a_success(records):
    first = records.create("outcomes/7/a.json", CLAIM)
    assert records.create_or_same("outcomes/7/a.json", dict(reversed(CLAIM.items()))) == first


def test_a_record_that_goes_while_it_is_looked_at_is_no_success(objects, records, monkeypatch):
    records.create("outcomes/7/a.json", CLAIM)
    monkeypatch.setattr(records, "read", lambda _key: None)
    with pytest.raises(ObjectExistsError):
        records.create_or_same("outcomes/7/a.json", CLAIM)


def test_a_create_whose_answer_was_lost_is_settled_by_repeating_it(objects, records):
    objects.fail("put", after=True)
    with pytest.raises(ObjectStoreError):
        records.create_or_same("outcomes/7/a.json", CLAIM)
    assert records.create_or_same("outcomes/7/a.json", CLAIM).record == CLAIM


def test_a_claim_is_renewed_only_by_who_read_it_last(records):
    mine = records.create("claims/7.json", CLAIM)
    theirs = records.replace_if_match("claims/7.json", {**CLAIM, "run_id": "r2"}, etag=mine.etag)
    with pytest.raises(ObjectConflictError):
        records.replace_if_match("claims/7.json", CLAIM, etag=mine.etag)
    assert records.read("claims/7.json") == theirs


def test_a_listing_gives_relative_keys_of_this_instance_only(objects, records):
    records.create("attempts/7/a.json", CLAIM)
    records.create("attempts/70/b.json", CLAIM)
    RecordStore(objects, "other").create("attempts/7/c.json", CLAIM)
    assert list(records.list("attempts/7/")) == ["attempts/7/a.json"]
    assert list(records.list()) == ["attempts/7/a.json", "attempts/70/b.json"]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a//b",
        "../x",
        "a/../../x",
        "a\\b",
        "a b",
        "x-ledger-7.json",
        "é.json",
        "a/",
        "a\n",
    ],
)
def test_keys_that_leave_the_prefix_or_look_like_the_brokers_are_refused(records, key):
    with pytest.raises(ValueError, match="record key"):
        records.create(key, CLAIM)


@pytest.mark.parametrize("instance", ["", "a/b", "..", "x y"])
def test_an_instance_that_leaves_the_prefix_is_refused(objects, instance):
    with pytest.raises(ValueError, match=r"instance|record key"):
        RecordStore(objects, instance)


def test_something_else_under_the_key_is_a_format_error(objects, records):
    objects.put("tierkeeper/e7c3-instance/claims/7.json", b"hello")
    with pytest.raises(FormatError, match=r"claims/7\.json"):
        records.read("claims/7.json")
