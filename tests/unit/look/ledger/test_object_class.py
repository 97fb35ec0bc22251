"""Whether a broker can read an object: known, or asked by one byte; an outage says nothing."""

from dataclasses import replace

import pytest

from tests.support.copies import Copy
from tiering_assets.look.ledger.object_class import can_be_read, read_unless_archived
from tiering_assets.resources.errors import ObjectStoreError


@pytest.fixture
def copy():
    return Copy()


def head(copy, storage_class, **changes):
    copy.excused()
    copy.scene.world.objects.move(copy.data_key, storage_class)
    return replace(copy.scene.world.objects.peek_head(copy.data_key), **changes)


def asked(copy):
    return [key for method, key in copy.scene.world.objects.calls if method == "get_range"]


@pytest.mark.parametrize(("name", "reads"), [("STANDARD_IA", True), ("GLACIER", False)])
def test_of_a_known_class_nothing_is_asked(copy, name, reads):
    found = head(copy, name)
    before = asked(copy)
    assert can_be_read(copy.scene.process(), found) is reads
    assert asked(copy) == before


def test_of_an_unknown_class_one_byte_is_asked(copy):
    found = head(copy, "SOMETHING_NEW")
    before = len(asked(copy))
    assert can_be_read(copy.scene.process(), found) is True
    assert len(asked(copy)) == before + 1


def test_of_an_empty_object_no_byte_can_be_asked(copy):
    copy.scene.world.objects.put("empty", b"")
    found = replace(copy.scene.world.objects.peek_head("empty"), storage_class="SOMETHING_NEW")
    assert can_be_read(copy.scene.process(), found) is True


def test_an_outage_says_nothing_about_an_object_that_can_be_read(copy):
    copy.scene.world.objects.fail("get", times=9)
    with pytest.raises(ObjectStoreError, match="injected fault"):
        read_unless_archived(copy.scene.process(), copy.index_key)


def test_an_outage_says_nothing_about_an_object_that_is_gone(copy):
    copy.lose(copy.index_key)
    copy.scene.world.objects.fail("get", times=9)
    with pytest.raises(ObjectStoreError, match="injected fault"):
        read_unless_archived(copy.scene.process(), copy.index_key)


def test_of_one_in_an_archive_only_the_head_is_known(copy):
    copy.excused()
    copy.scene.world.objects.move(copy.index_key, "DEEP_ARCHIVE")
    found, body = read_unless_archived(copy.scene.process(), copy.index_key)
    assert found is not None
    assert (found.key, body) == (copy.index_key, None)
