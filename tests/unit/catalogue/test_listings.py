"""Every key once, whatever was known of it, in lots that are small and lie side by side."""

from itertools import pairwise

import pytest

from tiering_assets.catalogue import listings
from tiering_assets.catalogue.listings import AT_ONCE, listed_lots
from tiering_assets.catalogue.post import post
from tiering_assets.ground.named_records import is_named
from tiering_assets.ground.record_book import RecordBook

IDS = [7, 42, 100, 101, 102, 1000, 9999, 12345, 20000, 20001]


@pytest.fixture
def fleet(desk, catalogue):
    """Ledgers of pages that are posted, and as many that no page names."""
    for ledger_id in IDS:
        desk.chain(ledger_id)
    desk.book.close_page()
    post(desk.stack, catalogue)
    for ledger_id in IDS:
        desk.outcome(ledger_id + 5, book=RecordBook(desk.objects, "inst"))
    desk.claim(42)
    return desk


def there(desk):
    return sorted(key for key in desk.book.every_key() if is_named(key))


def test_little_is_one_lot_of_all_folders(fleet, catalogue):
    [lot] = listed_lots(fleet.stack, catalogue.opened())
    assert lot.keys == there(fleet)
    assert lot.after < lot.keys[0]
    assert lot.keys[-1] <= lot.upto


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 100])
def test_lots_of_any_size_have_every_key_once(fleet, catalogue, monkeypatch, size):
    monkeypatch.setattr(listings, "LOT", size)
    lots = [*listed_lots(fleet.stack, catalogue.opened())]
    assert [key for lot in lots for key in lot.keys] == there(fleet)
    assert all(lot.after < key <= lot.upto for lot in lots for key in lot.keys)
    for one, other in pairwise(lots):
        folder = one.upto.removesuffix("0")
        assert other.after == one.upto or (one.upto == f"{folder}0" and other.after > one.upto)
    assert max(len(lot.keys) for lot in lots) <= size * AT_ONCE


def test_about_so_many_keys_are_listed_side_by_side(fleet, catalogue, monkeypatch):
    monkeypatch.setattr(listings, "LOT", 2)
    rounds = []

    def in_parallel(act, items):
        rounds.append([one for one in items if one.about])
        return [act(one) for one in items]

    fleet.stack.in_parallel = in_parallel
    assert [*listed_lots(fleet.stack, catalogue.opened())]
    several = [some for some in rounds if len(some) > 1]
    assert several
    assert max(sum(one.about for one in some) for some in several) <= 2 * AT_ONCE


def test_of_an_old_bucket_nothing_is_known_and_all_is_listed(desk, catalogue, monkeypatch):
    monkeypatch.setattr(listings, "LOT", 2)
    for ledger_id in IDS:
        desk.chain(ledger_id, book=RecordBook(desk.objects, "inst"))
    lots = [*listed_lots(desk.stack, catalogue.opened())]
    assert [key for lot in lots for key in lot.keys] == there(desk)
    assert max(len(lot.keys) for lot in lots) == 2
