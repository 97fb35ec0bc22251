"""The records that pages name: which are read, and what is said of those that are not as named."""

from dataclasses import replace

import pytest

from tests.unit.catalogue.desk import OTHER_UID, batch, example, page, stored, unreadable
from tests.unit.records.examples import ML_NAME, UID
from tiering_assets.catalogue.facts.read_pages import FoundRecord
from tiering_assets.catalogue.facts.rows import block_rows, event_rows
from tiering_assets.catalogue.named import named_in, read_record, to_read
from tiering_assets.catalogue.post import read_named
from tiering_assets.records import keys, models
from tiering_assets.records.bucket_models import NamedRecord

ATTEMPT, CERTIFICATE = keys.attempt(42, UID), keys.certificate(42, UID)
INTENT, RELEASE = keys.release_intent(42, UID), keys.release(42, UID)


def record_at(desk, key, sha256=None):
    """The record that lies there as a page names it."""
    found = read_record(desk.stack.book, NamedRecord(key=key, sha256=sha256))
    assert (found.missing, found.why) == (False, None)
    assert found.stored is not None
    return found.stored


@pytest.mark.parametrize(
    ("names", "read"),
    [
        ([ATTEMPT], [ATTEMPT]),
        ([ATTEMPT, CERTIFICATE], [CERTIFICATE]),
        ([ATTEMPT, keys.certificate(42, OTHER_UID)], [ATTEMPT, keys.certificate(42, OTHER_UID)]),
        ([INTENT], [INTENT]),
        ([INTENT, RELEASE], [RELEASE]),
        ([RELEASE, keys.quarantine(42, UID)], [keys.quarantine(42, UID), RELEASE]),
        ([RELEASE, keys.release_intent(42, OTHER_UID)], None),
        ([CERTIFICATE, keys.quarantine(42, UID), "certificates/x"], None),
        ([keys.outcome(42, UID), "plans/x.json"], []),
        ([CERTIFICATE, CERTIFICATE], [CERTIFICATE]),
        # Beside a certificate only its own attempt is not read, whatever a key begins with.
        ([keys.quarantine(42, UID), f"certificates/quarantines/42/{UID}.json"], None),
    ],
)
def test_a_record_that_another_tells_about_is_not_read(names, read):
    assert to_read(names) == (sorted(names) if read is None else read)


def test_of_two_pages_that_name_a_record_the_later_counts():
    old, new = (NamedRecord(key=CERTIFICATE, sha256=digit * 64) for digit in "ab")
    assert named_in([page(1, names=[old]), unreadable(2), page(3, names=[new])]) == {
        CERTIFICATE: new
    }


def test_what_only_goes_is_not_read():
    assert named_in([page(1, "gone", names=[CERTIFICATE]), page(2, "open")]) == {}


def test_a_record_is_what_its_page_names(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    sha256 = desk.book.read_any(key).sha256
    desk.objects.calls.clear()
    found = record_at(desk, key, sha256)
    assert isinstance(found.record, models.Certificate)
    assert found.sha256 == sha256
    assert len(desk.objects.calls) == 1


def test_a_name_without_a_digest_is_good_for_any_bytes(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    assert read_record(desk.stack.book, NamedRecord(key=key)).stored is not None


def test_one_that_is_not_there_is_missing(desk):
    found = read_record(desk.stack.book, NamedRecord(key=CERTIFICATE, sha256="a" * 64))
    assert (found.stored, found.missing, found.why) == (None, True, "nothing lies there")


def test_one_with_other_bytes_than_the_pages_is_damaged(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    found = read_record(desk.stack.book, NamedRecord(key=key, sha256="a" * 64))
    assert (found.stored, found.missing) == (None, False)
    assert found.why == f"its SHA-256 is {desk.book.read_any(key).sha256}"


def test_one_that_nobody_can_read_is_damaged(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    desk.change(key, b'"sim-bucket"', b'"sim-basket"')
    found = read_record(desk.stack.book, NamedRecord(key=key))
    assert (found.stored, found.missing) == (None, False)
    assert "it was changed after writing" in str(found.why)


def test_a_kind_that_changes_counts_with_any_bytes(desk):
    key = desk.scrub()
    assert record_at(desk, key, "a" * 64).record.depth == "deep"


def test_a_record_of_another_kind_than_its_keys_is_damaged(desk):
    desk.book.create(CERTIFICATE, example(models.Outcome))
    found = read_record(desk.stack.book, NamedRecord(key=CERTIFICATE))
    assert found.stored is None
    assert found.why


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (keys.HOLD_ALL, models.ScopeHold),
        (keys.hold(42), models.Hold),
        (INTENT, models.ReleaseIntent),
        (RELEASE, models.Release),
    ],
)
def test_of_a_folder_with_two_kinds_each_is_read_as_what_it_is(desk, key, kind):
    desk.book.create(key, example(kind))
    assert isinstance(record_at(desk, key).record, kind)


def test_records_of_a_page_are_read_once_each_and_silent_ones_not_at_all(desk):
    desk.chain(42)
    desk.outcome(7)
    desk.book.close_page()
    names = [
        one
        for folder in ("attempts", "certificates", "outcomes", "releases", "publications")
        for one in desk.book.keys(f"{folder}/")
    ]
    desk.objects.calls.clear()
    found = read_named(desk.stack, [page(1, names=names)])
    assert sorted(key.partition("/")[0] for key in found) == [
        "certificates",
        "publications",
        "releases",
    ]
    assert [name for name, _key in desk.objects.calls] == ["get"] * 3


def events_of(*pages, found=()):
    return [
        (row["page"], row["what"], row.get("why")) for row in event_rows(batch(*pages, found=found))
    ]


def test_each_name_on_a_page_is_an_event(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    one = page(3, names=[NamedRecord(key=key, sha256="ab" * 32), keys.publication(ML_NAME, 1)])
    first, second = event_rows(batch(one, found=[]))
    assert first == {
        "page": 3,
        "at": one.stored.record.written_at,
        "what": "written",
        "kind": "certificates",
        "ledger_id": 42,
        "uid": key.split("/")[2].removesuffix(".json"),
        "run_id": "run-1",
        "command": "tierkeeper test",
        "key": key,
        "sha256": "ab" * 32,
        "why": None,
    }
    assert (second["kind"], second["ledger_id"], second["uid"]) == ("publications", None, None)


def test_a_record_that_was_found_as_named_is_written():
    record = stored(CERTIFICATE, example(models.Certificate))
    assert events_of(page(1, names=[CERTIFICATE]), found=[record]) == [(1, "written", None)]


def test_an_event_says_what_was_found_instead():
    names = [CERTIFICATE, ATTEMPT]
    found = [
        (CERTIFICATE, FoundRecord(missing=True, why="nothing lies there")),
        (ATTEMPT, FoundRecord(why="its SHA-256 is ab")),
    ]
    assert events_of(page(1, names=names), unreadable(2), found=found) == [
        (1, "missing", "nothing lies there"),
        (1, "damaged", "its SHA-256 is ab"),
        (2, "page_damaged", "it is gone"),
    ]
    assert events_of(page(1, "gone", names=names), found=found) == [(1, "gone", None)] * 2
    assert events_of(page(1, "open", ledgers=[42])) == []


def test_a_block_says_where_its_bytes_are_and_when_its_messages_were_published(desk):
    desk.chain(42)
    [key] = desk.book.keys("certificates/")
    certificate = record_at(desk, key)
    first, second = block_rows(batch(page(4, names=[key]), found=[certificate]))
    record = certificate.record
    assert [row["length"] for row in (first, second)] == [b.block_length for b in record.blocks]
    assert (first["data_key"], first["page"], first["certificate_sha256"]) == (
        record.data.key,
        4,
        certificate.sha256,
    )
    assert first["publish_min"].isoformat() == "2023-11-14T22:13:20+00:00"
    assert first["messages"] == first["last_entry_id"] + 1
    assert [second[name] for name in ("publish_min", "publish_max", "messages")] == [None] * 3


@pytest.mark.parametrize("ms", [2**62, -(2**62)])
def test_a_time_that_no_calendar_has_is_null(ms):
    certificate = example(models.Certificate)
    block = replace(certificate.blocks[0], publish_min_ms=ms, publish_max_ms=0)
    record = stored(CERTIFICATE, replace(certificate, blocks=(block,)))
    [row] = block_rows(batch(page(1, names=[CERTIFICATE]), found=[record]))
    assert row["publish_min"] is None
    assert row["publish_max"].year == 1970


def test_only_certificates_that_were_found_as_named_have_blocks():
    hold = stored(keys.hold(42), example(models.Hold))
    names = [CERTIFICATE, hold.key]
    gone = (CERTIFICATE, FoundRecord(missing=True))
    assert [*block_rows(batch(page(1, names=names), unreadable(2), found=[gone, hold]))] == []
    assert [*block_rows(batch(page(1, names=names), found=[hold]))] == []
