"""Lots of bytes by a real Spark: they come back, side by side, and errors with their class."""

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.support.spark_copies import wait_for
from tiering_assets.resources.errors import PrerequisiteError, SettingsError
from tiering_assets.resources.settings import Settings, SparkSettings, StoreSettings
from tiering_assets.spark import bootstrap
from tiering_assets.spark.lots import open_lots

pytestmark = [pytest.mark.stack, pytest.mark.spark]
ENTRY = "tests.stack.test_spark_lots:open_here"


def open_here(settings, *, folder):
    """In a worker: answers with its lot back to front, or does what the lot says."""

    def work(lot):
        if lot == b"away":
            raise SettingsError("no such bucket")
        if lot.startswith(b"wait"):
            with open(f"{folder}/{lot.decode()}", "w"):
                time.sleep(2)
        return lot[::-1]

    return work


@pytest.fixture(scope="module")
def settings():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", ".")  # workers find this module
        yield Settings(
            store=StoreSettings(bucket="b", access_key="a", secret_key="s"),
            spark=SparkSettings(master="local[2,4]"),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lots")


@pytest.fixture(scope="module")
def lots(settings, folder):
    """One session: each takes twenty seconds of processor time to start."""
    with open_lots(settings, ENTRY, {"folder": str(folder)}) as lots:
        yield lots


def test_a_worker_of_another_build_is_refused_by_name(settings, tmp_path, monkeypatch):
    really = bootstrap.checked

    def other(entry, arguments, *, packages=""):
        made: Any = really(entry, arguments, packages=packages)
        made.keywords["expected"] = {**made.keywords["expected"], "build": "0" * 16}
        return made

    monkeypatch.setattr("tiering_assets.spark.lots.checked", other)
    with (
        open_lots(settings, ENTRY, {"folder": str(tmp_path)}) as lots,
        pytest.raises(PrerequisiteError, match="has build"),
    ):
        lots.submit(b"ab").result()


def test_who_stops_waiting_begins_no_other_lot(settings, tmp_path):
    with open_lots(settings, ENTRY, {"folder": str(tmp_path)}) as lots:
        asked = [lots.submit(b"wait-%d" % n) for n in range(5)]
        wait_for(lambda: len([*tmp_path.iterdir()]) == 2, what="two lots")
    assert [one.cancelled() for one in asked] == [False, False, True, True, True]
    assert asked[0].result() == b"0-tiaw"


def test_without_java_nothing_is_opened(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PrerequisiteError, match="Java"), open_lots(settings, ENTRY, {}):
        pass


def test_a_master_that_is_refused_is_told_first(settings):
    yarn = replace(settings, spark=SparkSettings(master="yarn"))
    with pytest.raises(SettingsError, match="yarn"), open_lots(yarn, ENTRY, {}):
        pass


# Behind those with sessions of their own: a process has one at a time.
def test_lots_come_back_and_a_large_one_is_whole(lots):
    large = bytes(range(256)) * 40_000
    asked = [b"", b"abc", large]
    assert [one.result() for one in [lots.submit(lot) for lot in asked]] == [
        lot[::-1] for lot in asked
    ]


def test_as_many_as_there_are_cores_are_worked_on_at_once(lots, folder):
    assert lots.at_once == 2
    under_way = [lots.submit(b"wait-1"), lots.submit(b"wait-2")]
    wait_for(lambda: len([*folder.iterdir()]) == 2, what="both lots")
    assert [one.result() for one in under_way] == [b"1-tiaw", b"2-tiaw"]


def test_an_error_has_its_class_and_the_next_lot_is_done(lots):
    with pytest.raises(SettingsError, match="no such bucket"):
        lots.submit(b"away").result()
    assert lots.submit(b"ab").result() == b"ba"
