"""What a row says of a ledger where something is not there, not closed, or not as it should be."""

from dataclasses import replace

import pytest

from tests.support.ledger_damage import in_copy, published_again
from tests.support.ledger_facts import (
    CERTIFICATE,
    LEDGER_ID,
    OTHER_UID,
    SOUND,
    STARTED,
    UID,
    head,
    listed,
    stored,
)
from tiering_assets.quality.ledger_frame import ledger_rows
from tiering_assets.records.models import SuiteResult
from tiering_assets.resources.metastore.offload_context import OffloadContext


def row(*, ledgers=None, certificate=CERTIFICATE, **copy):
    topic = SOUND.topic if ledgers is None else replace(SOUND.topic, ledgers=tuple(ledgers))
    proven = stored(certificate, "certificate record", STARTED)
    [found] = ledger_rows(topic, [replace(SOUND.copy, certificate=proven, **copy)])
    return found


PLAIN = listed(LEDGER_ID, UID, offload=None)


# ----- the topic's list


def test_a_sound_ledger_is_listed_closed_and_behind_the_one_before():
    found = row()
    assert (found.times_listed, found.previous_listed, found.listed_closed) == (1, 40, True)
    assert (found.listed_entries, found.listed_bytes) == (100, 10_000)
    assert (found.context_uid, found.context_complete) == (str(UID), True)
    assert found.context_bucket == "tiered"
    assert found.ledgers_of_attempt == 1
    assert found.unlisted_before == ""


def test_a_ledger_that_is_not_listed_has_nothing_of_a_list():
    found = row(ledgers=[listed(40, OTHER_UID)])
    assert (found.times_listed, found.previous_listed, found.listed_closed) == (0, -1, False)
    assert (found.listed_entries, found.listed_bytes) == (None, None)
    assert (found.context_uid, found.context_complete, found.context_bucket) == (None, False, None)


def test_a_ledger_without_a_context_is_of_no_attempt():
    found = row(ledgers=[listed(40, OTHER_UID), PLAIN])
    assert found.listed_closed
    assert (found.context_uid, found.context_complete, found.context_bucket) == (None, False, None)
    assert found.ledgers_of_attempt == 0


def test_the_ledger_that_is_written_to_is_not_closed():
    assert not row(ledgers=[replace(PLAIN, closed_at_ms=None)]).listed_closed


def test_a_context_that_is_begun_is_not_complete():
    begun = OffloadContext(uid=UID, complete=False)
    found = row(ledgers=[replace(PLAIN, offload=begun)])
    assert (found.context_uid, found.context_complete) == (str(UID), False)


def test_what_was_trimmed_with_the_front_of_the_list_is_not_missing():
    """Ledger 7 was published, and 41 was: only the one in between is missed."""
    published = frozenset({7, 41})
    topic = replace(SOUND.topic, published=published)
    first, second = ledger_rows(topic, [replace(SOUND.copy, ledger_id=i) for i in (40, LEDGER_ID)])
    assert first.unlisted_before == ""
    assert second.unlisted_before == "41"


# ----- the certificate


@pytest.mark.parametrize("name", ["data", "index"])
@pytest.mark.parametrize("version", [None, "v7"])
def test_a_version_is_told_where_the_store_gave_one(name, version):
    facts = replace(getattr(CERTIFICATE, name), version_id=version)
    found = row(certificate=replace(CERTIFICATE, **{name: facts}))
    assert getattr(found, f"certified_{name}_version") == (version or "")


def test_suites_are_counted_by_how_they_ended():
    [sound] = CERTIFICATE.suites
    failed = SuiteResult(name="another/1", digest="", success=False, evaluated=1, successful=0)
    found = row(certificate=replace(CERTIFICATE, suites=(sound, failed)))
    assert (found.suites_passed, found.suites_failed) == (1, "another/1")


@pytest.mark.parametrize("text", ["0" * 63, "0" * 65, "g" * 64, "A" * 64, ""])
def test_each_field_that_holds_no_digest_is_counted(text):
    first, *rest = CERTIFICATE.blocks
    bad = replace(CERTIFICATE, previous=text, blocks=(replace(first, sha256=text), *rest))
    assert row(certificate=bad).digests_missing == 2
    assert row().digests_missing == 0


@pytest.mark.parametrize("version", [None, "null"])
def test_what_lay_there_before_the_bucket_kept_versions_is_the_same_version(version):
    found = row(index=replace(head("index", 300, '"i"'), version_id=version))
    assert found.index_version == found.certified_index_version == ""


def test_of_several_entries_that_of_the_certified_attempt_counts():
    again = in_copy(published_again)(SOUND)
    assert again.copy.published[0].uid == OTHER_UID
    assert again.row().times_published == 2
    assert again.row().published_certificate == SOUND.row().certificate_sha256


def test_the_attempts_start_is_in_milliseconds_of_its_record():
    assert row().started_ms == round(STARTED.timestamp() * 1000)


# ----- the objects


def test_the_storage_class_is_that_of_the_data_object():
    archived = replace(head("data", 12_000, '"d"', "v1"), storage_class="GLACIER")
    assert row(data=archived).storage_class == "GLACIER"
    assert row().storage_class == ""
    assert row(data=None).storage_class == ""
