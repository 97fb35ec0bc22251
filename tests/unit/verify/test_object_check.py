"""What the two objects of an attempt say, in words that are true."""

from dataclasses import replace

import pytest

from tests.support.copies import BROKERS, OURS, PAYLOADS, Copy
from tests.support.sim_scene import TOPIC
from tiering_assets.look.ledger import object_class
from tiering_assets.records import keys
from tiering_assets.resources.errors import ObjectNotFoundError, RefusedError
from tiering_assets.verify import object_check
from tiering_assets.verify.object_check import (
    check_object,
    look_at_object,
    topic_spending,
    total_findings,
)


@pytest.fixture(params=[OURS, BROKERS])
def copy(request):
    return Copy(request.param)


def look(copy, key=None):
    return look_at_object(copy.scene.process(), key or copy.data_key)


def test_whole_objects_of_several_blocks_have_no_problem(copy):
    found = check_object(copy.scene.process(), copy.index_key)
    assert (found.findings, found.entries, found.payload_bytes) == ((), 6, 6 * 260)


@pytest.mark.parametrize("key", ["", "tierkeeper/x.json", "not-a-uuid-ledger-1"])
def test_another_key_is_refused(copy, key):
    with pytest.raises(RefusedError, match="is not the key of a data or index object"):
        look(copy, key or "x")


def test_where_neither_is_there_nothing_is_told_of_them(copy):
    key = copy.data_key
    copy.lose(copy.data_key, copy.index_key)
    with pytest.raises(ObjectNotFoundError, match="has neither"):
        look(copy, key)


@pytest.mark.parametrize("name", ["data", "index"])
def test_one_that_is_gone_is_the_only_problem(copy, name):
    copy.lose(getattr(copy, f"{name}_key"))
    assert look(copy).problems == (f"the {name} object is not there",)


def test_an_index_in_an_archive_is_told(copy):
    copy.excused()
    copy.scene.world.objects.move(copy.index_key, "GLACIER")
    assert look(copy).problems == ("the index object is archived (GLACIER): no broker reads it",)


def test_one_that_is_too_large_to_be_an_index_is_told(copy, monkeypatch):
    for module in (object_check, object_class):
        monkeypatch.setattr(module, "INDEX_BYTES_MAX", 100)
    [problem] = look(copy).problems
    assert problem.endswith("bytes, more than 100: it is no index")


# ----- whose budgets reading it is taken from


def test_it_is_the_topic_that_the_index_names(copy):
    sight = look(copy)
    assert topic_spending(sight) == TOPIC
    assert topic_spending(replace(sight, certificate=None)) == TOPIC


def test_without_an_index_it_is_the_certified_one(copy):
    copy.lose(copy.index_key)
    assert topic_spending(look(copy)) == (TOPIC if copy.who == OURS else "")


def test_what_the_index_says_comes_first():
    copy = Copy(OURS)
    sight = look(copy)
    certificate = sight.certificate
    other = replace(
        certificate, record=replace(certificate.record, ml_name="t/ns/persistent/other")
    )
    assert topic_spending(replace(sight, certificate=other)) == TOPIC
    assert topic_spending(replace(sight, certificate=other, metadata=None)).endswith("other")


# ----- totals


@pytest.mark.parametrize(
    ("entries", "payload_bytes", "found"),
    [
        (6, 1560, []),
        (6, 1559, []),  # its length may count more
        (5, 1560, ["entries: the index's ledger metadata says 6, found 5"]),
        (7, 1560, ["entries: the index's ledger metadata says 6, found 7"]),
        (6, 1561, ["payload bytes: the index's ledger metadata says 1560, found 1561"]),
    ],
)
def test_totals_are_compared_with_the_ledger_metadata(copy, entries, payload_bytes, found):
    assert len(PAYLOADS) == 6
    assert total_findings(look(copy).metadata, entries, payload_bytes) == found


def test_a_certificate_that_is_there_is_compared():
    copy = Copy(OURS)
    assert copy.scene.stack.book.keys(keys.certificates_of(copy.ledger_id))
    copy.flip(2)
    assert [
        one for one in check_object(copy.scene.process(), copy.data_key).findings if "SHA" in one
    ]
