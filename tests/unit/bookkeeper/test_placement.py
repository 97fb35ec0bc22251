from __future__ import annotations

import pytest

from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.placement import (
    batch_reads_allowed,
    segment_end,
    write_set,
)
from tiering_assets.resources.errors import IntegrityError


def ledger(*segments, last=99, ensemble=3, write_quorum=2):
    return LedgerMetadata(
        ledger_id=1,
        state=BookKeeperState.CLOSED,
        last_entry_id=last,
        length=0,
        ensemble_size=ensemble,
        write_quorum=write_quorum,
        ack_quorum=1,
        segments=tuple(EnsembleFragment(first, tuple(bookies)) for first, bookies in segments),
    )


def test_the_modulus_takes_the_absolute_entry_id():
    metadata = ledger((0, "abc"), (50, "abd"))
    assert [write_set(metadata, e) for e in (0, 1, 2)] == [("a", "b"), ("b", "c"), ("c", "a")]
    assert write_set(metadata, 49) == ("b", "c")
    assert write_set(metadata, 50) == ("d", "a")  # 50 mod 3 is 2: not the first of its segment
    assert write_set(metadata, 51) == ("a", "b")


def test_an_ensemble_change_after_the_last_entry_leaves_an_empty_segment():
    metadata = ledger((0, "abc"), (100, "abd"), last=99)
    assert segment_end(metadata, 0, last_entry_id=99) == 99
    assert segment_end(metadata, 1, last_entry_id=99) == 99


def test_batches_only_where_one_bookie_has_every_entry():
    assert batch_reads_allowed(ledger((0, "abc"), write_quorum=3))
    assert not batch_reads_allowed(ledger((0, "abc"), write_quorum=2))


@pytest.mark.parametrize(
    "metadata",
    [ledger(), ledger((10, "abc")), ledger((0, "ab")), ledger((0, "abc"), write_quorum=0)],
)
def test_metadata_without_a_full_ensemble_for_the_entry_is_refused(metadata):
    with pytest.raises(IntegrityError, match="ledger 1"):
        write_set(metadata, 5)
