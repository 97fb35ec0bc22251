"""Which block has a message, a time or a byte: of the attempt that counts, and of no other."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.audited_bucket import ML_NAME
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import answer, least
from tiering_assets.lineage import find
from tiering_assets.lineage.asked import MessagePlace, Span, parse_span, parse_topic
from tiering_assets.lineage.find import (
    block_of_byte,
    block_of_message,
    blocks_after,
    blocks_before,
    blocks_of_ledgers,
    blocks_of_span,
    require_topic,
)
from tiering_assets.resources.errors import CatalogueError, IntegrityError

TOPIC = parse_topic("public/default/audited")
PUBLISHED = datetime.fromtimestamp(1_700_000_000, UTC)  # to a thousandth later, as put_chain says


@pytest.fixture
def tables(desk, catalogue, chain):
    desk.book.close_page()
    post(desk.stack, catalogue)
    return catalogue.opened()


@pytest.fixture
def as_of(catalogue, tables):
    return least(catalogue, tables)


def test_each_entry_is_in_the_block_that_its_certificate_says(tables, as_of, chain):
    blocks = chain.certificate.blocks
    assert len(blocks) == 2
    for entry_id in range(8):
        found = block_of_message(tables, MessagePlace(42, entry_id), as_of)
        [facts] = [b for b in blocks if b.first_entry_id <= entry_id <= b.last_entry_id]
        assert (found.part, found.offset, found.sha256) == (
            facts.part_number,
            facts.offset,
            facts.sha256,
        )
        assert (found.topic, found.uid, found.counts) == (ML_NAME, str(chain.uid), True)
        assert found.bookie_copy.startswith("deleted ")


def test_each_byte_is_in_a_block_and_the_next_is_not(tables, as_of, chain):
    key = chain.certificate.data.key
    size = len(chain.data)
    for offset in (0, size // 2, size - 1):
        found = block_of_byte(tables, key, offset, as_of)
        assert found.offset <= offset < found.end
    for offset in (size, 2**70):
        with pytest.raises(CatalogueError, match=r"`tierkeeper object show"):
            block_of_byte(tables, key, offset, as_of)


@pytest.mark.parametrize("key", ["x", "' or 1=1 --", "{key}-index"])
def test_what_is_no_data_key_is_refused(tables, as_of, chain, key):
    with pytest.raises(ValueError, match="not the key of a data object"):
        block_of_byte(tables, key.format(key=chain.certificate.data.key), 0, as_of)


def test_what_is_not_in_the_catalogue_is_an_error_that_says_what_to_do(tables, as_of):
    with pytest.raises(
        CatalogueError, match=r"ledger 7 is not in .*as of page \d+.* catalogue post`"
    ):
        block_of_message(tables, MessagePlace(7, 0), as_of)
    with pytest.raises(CatalogueError, match=r"has entries 0 to 7, and no block .*has entry 8"):
        block_of_message(tables, MessagePlace(42, 8), as_of)
    with pytest.raises(CatalogueError, match=r"other is not in the catalogue"):
        require_topic(tables, parse_topic("public/default/other"), as_of)
    require_topic(tables, TOPIC, as_of)


def test_a_ledger_without_a_certified_attempt_has_no_blocks(desk, catalogue):
    desk.scrub(9)
    desk.book.close_page()
    post(desk.stack, catalogue)
    tables = catalogue.opened()
    with pytest.raises(CatalogueError, match="no certified attempt"):
        block_of_message(tables, MessagePlace(9, 0), least(catalogue, tables))


def parts(tables, first, last=None):
    return [one.part for one in blocks_of_span(tables, TOPIC, Span(first, last or first))]


def test_a_time_finds_blocks_whose_range_meets_it_and_those_that_have_none(tables):
    """Part 1 says when, part 2 does not."""
    ms = timedelta(milliseconds=1)
    assert parts(tables, PUBLISHED) == [1, 2]
    assert parts(tables, PUBLISHED + ms) == [1, 2]
    assert parts(tables, PUBLISHED + 2 * ms) == [2]
    assert parts(tables, PUBLISHED - ms) == [2]
    assert parts(tables, PUBLISHED - ms, PUBLISHED) == [1, 2]
    assert parts(tables, PUBLISHED + ms, PUBLISHED + 9 * ms) == [1, 2]


def test_partitions_are_in_their_topics_answer_and_others_are_not(desk, catalogue):
    names = ("orders", "orders-partition-0", "orders-partition-12", "orders-partition-x", "other")
    for ledger_id, name in enumerate(names):
        desk.chain(ledger_id, ml_name=f"public/default/persistent/{name}")
    desk.book.close_page()
    post(desk.stack, catalogue)
    tables, span = catalogue.opened(), parse_span("2020-01-01", "2030-01-01")
    found = blocks_of_span(tables, parse_topic("public/default/orders"), span)
    assert [(one.ledger_id, one.part) for one in found] == [
        (ledger_id, part) for ledger_id in range(3) for part in (1, 2)
    ]
    found = blocks_of_span(tables, parse_topic("public/default/orders-partition-12"), span)
    assert {one.ledger_id for one in found} == {2}
    with pytest.raises(CatalogueError, match="not in the catalogue"):
        require_topic(tables, parse_topic("public/default/order"), least(catalogue, tables))


def test_blocks_of_another_attempt_are_not_mixed_in(desk, catalogue):
    first = desk.chain(42, outcome="abandon")
    second = desk.chain(42)
    desk.book.close_page()
    post(desk.stack, catalogue)
    tables = catalogue.opened()
    as_of = least(catalogue, tables)
    assert block_of_message(tables, MessagePlace(42, 0), as_of).uid == str(second.uid)
    span = parse_span("2020-01-01", "2030-01-01")
    assert {one.uid for one in blocks_of_span(tables, TOPIC, span)} == {str(second.uid)}
    assert {one.uid for one in blocks_of_ledgers(tables, [42])} == {str(second.uid)}
    other = block_of_byte(tables, first.certificate.data.key, 0, as_of)  # its key names it
    assert (other.uid, other.counts) == (str(first.uid), False)


def test_a_span_that_too_many_blocks_meet_is_refused(tables, monkeypatch):
    monkeypatch.setattr(find, "BLOCKS_MAX", 1)
    with pytest.raises(CatalogueError, match="more than 1 blocks"):
        parts(tables, PUBLISHED)


def test_blocks_that_overlap_in_the_catalogue_are_an_error(tables, as_of, catalogue, chain):
    table = tables["blocks"]
    rows = answer(tables, "select * from blocks")
    table.append(rows, mark=table.mark + 1, told={})
    with pytest.raises(IntegrityError, match=r"blocks 1, 1 overlap .* lineage coverage"):
        block_of_message(catalogue.opened(), MessagePlace(42, 0), as_of)


@pytest.mark.parametrize("name", ["a'b/ns/c", "t/ns/x' or '1'='1", "t/ns/%"])
def test_names_with_quotes_are_names(tables, name):
    span = parse_span("2020-01-01", "2030-01-01")
    assert blocks_of_span(tables, parse_topic(name), span) == []


def test_blocks_of_a_topic_are_told_from_one_on_and_back(desk, catalogue):
    for ledger_id in (42, 7, 100):
        desk.chain(ledger_id)
    desk.chain(50, ml_name="public/default/persistent/other")
    desk.book.close_page()
    post(desk.stack, catalogue)
    tables = catalogue.opened()
    every = blocks_of_span(tables, TOPIC, None)
    assert [(one.ledger_id, one.part) for one in every] == [
        (ledger, part) for ledger in (7, 42, 100) for part in (1, 2)
    ]
    for at, block in enumerate(every):
        assert [*blocks_before(tables, block)] == every[:at][::-1]
        assert [*blocks_after(tables, block)] == every[at + 1 :]
