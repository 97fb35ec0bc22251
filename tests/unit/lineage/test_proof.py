"""A proof reads certificate and object again, and says of each row whether they still agree."""

from dataclasses import replace

import pytest

from tiering_assets.catalogue.post import post
from tiering_assets.lineage.find import blocks_of_ledgers
from tiering_assets.lineage.proof import prove_blocks
from tiering_assets.records import keys


@pytest.fixture
def prove(desk, catalogue, chain):
    desk.book.close_page()
    post(desk.stack, catalogue)
    blocks = blocks_of_ledgers(catalogue.opened(), [42])
    assert len(blocks) == 2

    def proven(**changes):
        return prove_blocks(desk.stack, [replace(one, **changes) for one in blocks])

    return proven


def differ(compared):
    return [one.what for one in compared if not one.agrees]


def test_what_is_as_it_was_agrees(prove, desk):
    found = prove()
    assert (len(found), differ(found)) == (4, [])
    assert ["certificate" in one.what for one in found] == [True, False, True, False]


def test_an_attempt_is_asked_for_once(prove, desk):
    asked: list[str] = []
    really = desk.objects.head

    def head(key, **how):
        asked.append(key)
        return really(key, **how)

    desk.objects.head = head
    prove()
    assert len(asked) == 1


def test_a_certificate_with_other_bytes_differs(prove, desk, chain):
    key = keys.certificate(42, chain.uid)
    body = desk.bytes_of(key)
    desk.drop(key)
    assert all("it is not there" in one for one in differ(prove()))
    desk.objects.put(desk.key_of(key), body.replace(b'"entries_sha256"', b'"entries_sha265"'))
    assert len(differ(prove())) == 2


def test_a_row_that_names_another_digest_differs(prove):
    assert all("the row names 0" in one for one in differ(prove(certificate_sha256="0" * 64)))


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"part": 9}, {"length": 1}])
def test_a_row_that_says_something_else_than_its_certificate_differs(prove, change):
    found = differ(prove(**change))
    assert len(found) == 2
    assert all("says" in one and "the row" in one for one in found)


def test_an_object_that_is_gone_or_another_one_differs(prove, desk, chain):
    key = chain.certificate.data.key
    desk.objects.delete(key)
    assert all(f"{key} is not there" in one for one in differ(prove()))
    desk.objects.put(key, b"short")
    assert all("its certificate says" in one for one in differ(prove()))


def test_an_object_too_short_for_the_block_differs_without_a_certificate_too(prove, desk, chain):
    desk.drop(keys.certificate(42, chain.uid))
    desk.objects.delete(chain.certificate.data.key)
    desk.objects.put(chain.certificate.data.key, b"short")
    assert any("has 5 bytes, the block ends at" in one for one in differ(prove()))


def test_another_version_of_the_object_differs(prove):
    assert all(
        "the row names v9" in one for one in differ(prove(version_id="v9")) if "object" in one
    )
    assert len(differ(prove(version_id="v9"))) == 4  # the certificate does not say it either


def test_a_block_in_another_bucket_is_not_proven(prove):
    found = differ(prove(bucket="elsewhere"))
    assert sum("store.bucket is another" in one for one in found) == 2
