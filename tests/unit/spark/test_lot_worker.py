"""A lot in a worker, without Spark: what it is opened with, and what goes wrong as a row."""

from __future__ import annotations

import json
from base64 import b64decode

import pyarrow as pa
import pytest

from tiering_assets.resources.errors import ObjectStoreError, PrerequisiteError, TierkeeperError
from tiering_assets.resources.settings import Settings, StoreSettings
from tiering_assets.resources.settings_of_workers import plain_settings
from tiering_assets.spark.bootstrap import REFUSAL, _refused
from tiering_assets.spark.lot_worker import answer_columns, run_lots
from tiering_assets.spark.lots import error_of

ENTRY = f"{__name__}:open_here"
opened: list[tuple[str, str]] = []


def open_here(settings, *, word):
    """Lots back to front; `bad` cannot be done."""
    opened.append((settings.store.bucket, word))

    def work(lot):
        if lot == b"bad":
            raise ObjectStoreError("the store is away")
        return lot[::-1]

    return work


@pytest.fixture(autouse=True)
def nothing_opened(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    opened.clear()


def ran(*batches, word="x", entry=ENTRY):
    plain = plain_settings(Settings(store=StoreSettings(bucket="b")))
    made = (pa.RecordBatch.from_pylist([{"lot": lot} for lot in some]) for some in batches)
    return [row for one in run_lots(made, plain, entry, {"word": word}) for row in one.to_pylist()]


def test_every_lot_is_answered_by_what_is_opened_once():
    rows = ran([b"abc", b"de"], [b"f"])
    assert [b64decode(row["lot"]) for row in rows] == [b"cba", b"ed", b"f"]
    assert opened == [("b", "x")]


def test_what_goes_wrong_is_a_row_and_others_are_answered():
    bad, good = ran([b"bad", b"ab"])
    assert (bad["error"], bad["error_class"]) == ("the store is away", "ObjectStoreError")
    assert (b64decode(good["lot"]), good["error_class"]) == (b"ba", "")


def test_a_function_that_is_not_there_is_a_row():
    [row] = ran([b"a"], entry="tiering_assets.spark.nothing:open")
    assert row["error_class"] == "ModuleNotFoundError"


def test_the_row_of_a_refusal_has_the_same_columns():
    refused = _refused(json.dumps(answer_columns()), "another build")
    assert refused.schema == pa.RecordBatch.from_pylist(ran([b"a"])).schema
    assert refused.to_pylist()[0]["error_class"] == "PrerequisiteError"
    assert REFUSAL == "refusal"


def test_an_error_of_ours_is_one_of_its_class_here_and_another_is_told_with_its_name():
    known = error_of("ObjectStoreError", "the store is away")
    assert (type(known), str(known)) == (ObjectStoreError, "the store is away")
    assert type(error_of("PrerequisiteError", "x")) is PrerequisiteError
    other = error_of("KeyError", "'etag'")
    assert type(other) is TierkeeperError
    assert str(other) == "a Spark worker failed: KeyError: 'etag'"
    assert type(error_of("Mapping", "x")) is TierkeeperError
