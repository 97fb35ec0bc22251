"""Tables: rows and their mark are one commit, whatever is answered; errors are one plain line."""

import sys
from dataclasses import replace

import deltalake
import pyarrow as pa
import pytest

from tiering_assets.resources.errors import CatalogueError, PrerequisiteError
from tiering_assets.resources.plain_text import said as said_of
from tiering_assets.resources.settings import StoreSettings
from tiering_assets.resources.table_place import TablePlace, place_at
from tiering_assets.resources.tables import ask, open_table

SCHEMA = pa.schema([("n", pa.int64())])
SECRET = "planted-secret-key"
STORE = StoreSettings(access_key="a-key", secret_key=SECRET, region="eu-west-9")


@pytest.fixture
def place(tmp_path):
    return TablePlace(root=str(tmp_path / "tables"), options={})


def rows(*numbers):
    return pa.Table.from_pylist([{"n": n} for n in numbers], schema=SCHEMA)


def opened(place, *, make=True):
    return open_table(place, "things", SCHEMA, make=make)


def numbers(table):
    return sorted(ask("select n from things", {"things": table})["n"].to_pylist())


def test_rows_and_their_mark_come_together(place):
    table = opened(place)
    assert (table.mark, dict(table.told()), numbers(table)) == (0, {}, [])
    assert table.append(rows(1, 2), mark=5, told={"page": "5"})
    now = opened(place)
    assert (now.mark, now.told()["page"], numbers(now)) == (5, "5", [1, 2])
    assert now.version == table.version == 1


def test_a_commit_without_rows_moves_the_mark(place):
    assert opened(place).append(rows(), mark=3, told={})
    assert opened(place).mark == 3


@pytest.mark.parametrize("mark", [4, 5])
def test_a_mark_that_is_not_behind_that_of_before_is_refused(place, mark):
    opened(place).append(rows(1), mark=5, told={})
    with pytest.raises(ValueError, match=f"table things: mark {mark} is not behind 5"):
        opened(place).append(rows(2), mark=mark, told={})
    assert numbers(opened(place)) == [1]


@pytest.mark.parametrize(("others", "there"), [(5, True), (7, True), (3, False)])
def test_where_another_writer_was_faster_nothing_is_added_a_second_time(place, others, there):
    table, other = opened(place), opened(place)
    other.append(rows(1), mark=others, told={})
    assert table.append(rows(1), mark=5, told={}) is there
    assert (opened(place).mark, numbers(opened(place))) == (others, [1])


def test_rows_may_come_without_a_mark_and_leave_it_as_it_is(place):
    opened(place).append(rows(1), mark=5, told={"page": "5"})
    assert opened(place).append(rows(2), told={"page": "5"})
    now = opened(place)
    assert (now.mark, now.turn, now.told()["page"], numbers(now)) == (5, 2, "5", [1, 2])


@pytest.mark.parametrize("mark", [None, 6])
def test_a_commit_is_made_only_on_the_table_as_its_writer_saw_it(place, mark):
    table = opened(place)
    opened(place).append(rows(1), told={})
    assert table.append(rows(2), told={}, mark=mark) is False
    now = opened(place)
    assert (now.mark, now.turn, numbers(now)) == (0, 1, [1])
    assert now.append(rows(2), told={}, mark=mark)
    assert opened(place).turn == 2


def test_a_commit_without_a_mark_whose_answer_is_lost_is_made_again(place, monkeypatch):
    lose_an_answer(monkeypatch)
    assert opened(place).append(rows(1), told={}) is False  # who made it cannot be said
    assert (opened(place).turn, numbers(opened(place))) == (1, [1])


def lose_an_answer(monkeypatch):
    really = deltalake.write_deltalake

    def lost(*given, **how):
        really(*given, **how)
        raise OSError("the answer is lost")

    monkeypatch.setattr(deltalake, "write_deltalake", lost)


def test_a_commit_whose_answer_is_lost_is_done(place, monkeypatch):
    lose_an_answer(monkeypatch)
    assert opened(place).append(rows(1, 2), mark=5, told={})
    assert (opened(place).mark, numbers(opened(place))) == (5, [1, 2])


@pytest.mark.parametrize(("mark", "said"), [(5, "up to page 5"), (None, "of a scan")])
def test_a_commit_that_fails_names_table_and_page(place, monkeypatch, mark, said):
    def fail(*_given, **_how):
        raise OSError("\x1b[31mno space\x1b[0m\n  left\ton it")

    monkeypatch.setattr(deltalake, "write_deltalake", fail)
    with pytest.raises(CatalogueError) as caught:
        opened(place).append(rows(1), mark=mark, told={})
    assert str(caught.value) == (
        f"table things in {place.root}: rows {said} could not be added: no space left on "
        "it; nothing else waits for it, repeat"
    )
    assert opened(place).mark == 0


def test_a_table_that_is_not_there_is_empty_and_nothing_is_made(place, tmp_path):
    table = opened(place, make=False)
    assert (table.mark, numbers(table)) == (0, [])
    assert [*tmp_path.iterdir()] == []


def test_one_that_is_made_is_there_for_the_next(place, tmp_path):
    opened(place)
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["things"]
    assert numbers(opened(place, make=False)) == []


def test_a_made_table_keeps_what_readers_of_it_need(place, tmp_path):
    opened(place)
    kept = deltalake.DeltaTable(str(tmp_path / "tables" / "things")).metadata().configuration
    assert kept["delta.deletedFileRetentionDuration"] == "interval 7 days"
    assert kept["delta.logRetentionDuration"] == "interval 30 days"


def test_a_reader_has_the_table_as_it_was_opened(place):
    table, before = opened(place), opened(place)
    table.append(rows(1), mark=1, told={})
    assert numbers(before) == []


def test_a_table_whose_log_is_damaged_is_an_error_of_one_line(place, tmp_path):
    opened(place)
    for path in (tmp_path / "tables" / "things" / "_delta_log").glob("*.json"):
        path.write_text("no log\n")
    for make in (False, True):
        with pytest.raises(CatalogueError) as caught:
            opened(place, make=make)
        said = str(caught.value)
        assert said.startswith(f"table things in {place.root} cannot be opened: ")
        assert said.endswith("; nothing else waits for it")
        assert not {"\n", "\x1b"} & {*said}


def test_a_question_that_has_no_answer_is_an_error_of_one_line(place):
    with pytest.raises(CatalogueError, match="the catalogue cannot answer: ") as caught:
        ask("select nothing\nfrom nowhere", {"things": opened(place)})
    assert not {"\n", "\x1b"} & {*str(caught.value)}


def test_what_a_library_says_is_cut(place):
    said = said_of(OSError("x" * 10_000))
    assert said == "x" * 400


def test_without_the_package_it_is_named(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(PrerequisiteError, match="pip install deltalake"):
        opened(place)


# ----- where tables lie


def test_a_folder_needs_no_options(tmp_path):
    assert place_at(str(tmp_path), STORE) == TablePlace(root=str(tmp_path), options={})


def test_a_store_is_told_credentials_and_that_commits_are_conditional():
    place = place_at("s3://bucket/below/", STORE)
    assert place.root == "s3://bucket/below"
    assert place.options == {
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-west-9",
        "AWS_CONDITIONAL_PUT": "etag",
        "TIMEOUT": "20s",
        "CONNECT_TIMEOUT": "5s",
    }


def test_a_store_of_ones_own_is_told_its_address():
    options = place_at("s3://bucket", replace(STORE, endpoint="http://127.0.0.1:9000")).options
    assert options["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9000"
    assert options["AWS_ALLOW_HTTP"] == "true"


def test_a_wait_of_less_than_a_second_is_one_second():
    options = place_at("s3://b", replace(STORE, read_timeout_s=0.1, connect_timeout_s=0.2)).options
    assert (options["TIMEOUT"], options["CONNECT_TIMEOUT"]) == ("1s", "1s")


@pytest.mark.parametrize("token", [None, "a-token"])
def test_a_session_token_goes_along_where_there_is_one(monkeypatch, token):
    monkeypatch.setattr(
        "tiering_assets.resources.table_place.credentials_of", lambda _settings: ("a", "b", token)
    )
    assert place_at("s3://b", STORE).options.get("AWS_SESSION_TOKEN") == token


def test_no_secret_is_in_an_error_or_in_what_a_place_shows():
    store = replace(STORE, endpoint="http://127.0.0.1:1", connect_timeout_s=1, read_timeout_s=1)
    place = place_at("s3://bucket/below", store)
    place = replace(place, options={**place.options, "max_retries": "0", "retry_timeout": "1s"})
    assert SECRET not in repr(place)
    with pytest.raises(CatalogueError) as caught:
        opened(place, make=False)
    said = str(caught.value)
    assert SECRET not in said
    assert "a-key" not in said
    assert not {"\n", "\x1b"} & {*said}
