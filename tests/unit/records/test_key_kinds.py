"""Every key that we make is a record's; what an S3 console or a person leaves beside them is
none.
"""

import inspect
from datetime import UTC, datetime
from uuid import UUID

import pytest

from tiering_assets.records import key_kinds, keys
from tiering_assets.records.key_kinds import FOLDERS, is_record_key, what_a_stray_may_be

UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
NO_RECORDS_KEY = {
    "attempts_of",
    "by_broker",
    "certificates_of",
    "claimed_by",
    "filed_in",
    "is_release",
    "namespace_of",
    "page_number",
    "pair_of",
    "publications_of",
    "releases_of",
    "schema_version_of",
    "schemas_of",
    "topic_hash",
    "topic_hash_of",
    "unconfirmed_undos",
    "undos_of",
    # of streams
    "attempts_in",
    "failed_in",
    "of_segment",
    "of_stream",
    "segment_number",
    "segment_within",
    "stream_and_rest",
    "stream_name",
    "streams_of",
    "which_stream",
}
GIVEN: dict[str, list[object]] = {
    "ledger_id": [0, 42, 2**63 - 1],
    "uid": [UID],
    "ml_name": ["t/ns/persistent/orders"],
    "namespace": ["t/ns"],
    "digest": ["0" * 64],
    "incarnation": [0, 4294967310],
    "version": [0, 3, 2**63 - 1],
    "number": [1, 9_999_999_999],
    "hour": [datetime(2026, 1, 2, 3, tzinfo=UTC)],
    "bucket": ["tiered"],
    "broker": [None, "http://b:8080"],
    "what": ["shallow", "deep", "partial", "failed"],
    "stream": [keys.stream_name(4294967298, 1)],
    "undo_key": [keys.undo("t/ns/persistent/orders", UID)],
}


def calls(function):
    """Its results for each of some arguments, one after the other."""
    names = [*inspect.signature(function).parameters]
    for number in range(max(len(GIVEN[name]) for name in names)):
        yield function(*(GIVEN[name][number % len(GIVEN[name])] for name in names))


def every_key():
    for name, function in inspect.getmembers(keys, inspect.isfunction):
        ours = function.__module__ == keys.__name__ and not name.startswith("_")
        if ours and name not in NO_RECORDS_KEY:
            yield from calls(function)
    for _name, value in inspect.getmembers(keys):
        if isinstance(value, str) and value.endswith(".json") and "/" in value:
            yield value


EVERY_KEY = sorted(set(every_key()))


@pytest.mark.parametrize("key", EVERY_KEY)
def test_a_key_of_ours_is_a_records(key):
    assert is_record_key(key)


def test_there_is_a_key_of_every_folder_and_no_folder_without():
    assert {key.partition("/")[0] for key in EVERY_KEY} == set(FOLDERS) == set(key_kinds._RULES)


@pytest.mark.parametrize("key", EVERY_KEY)
def test_what_lies_beside_it_is_a_stray(key):
    folder, _slash, _rest = key.partition("/")
    parts = key.split("/")
    folders = ["/".join(parts[:n]) + "/" for n in range(1, len(parts))]
    for stray in (*folders, folder, f"{key}.bak", f"{key}/", f" {key}", f"{folder}//{parts[-1]}"):
        assert not is_record_key(stray), stray


@pytest.mark.parametrize(
    "stray",
    [
        "",
        "/",
        "readme.txt",
        "Claims/42.json",
        "claims/042.json",
        "claims/-1.json",
        "claims/42.JSON",
        f"attempts/42/{str(UID).upper()}.json",
        f"attempts/42/{UID}.intent.json",
        "holds/orders.json",
        "holds/topics/orders.json",
        "scrubs/42/x.deep.json",
        "unknown/42.json",
    ],
)
def test_so_is_what_somebody_made_up(stray):
    assert not is_record_key(stray)


def test_a_stray_among_holds_or_pauses_is_told_for_what_it_may_be():
    assert "hold" in what_a_stray_may_be("holds/orders.json")
    assert "hold" in what_a_stray_may_be("holds/")
    assert "pause" in what_a_stray_may_be("pauses/topics/orders.json")
    assert what_a_stray_may_be("attempts/") == ""
