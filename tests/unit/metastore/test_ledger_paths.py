import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.ledger_paths import (
    LEDGER_ID_MAX,
    LedgerLayout,
    decode_layout,
    ledger_id_at,
    ledger_path,
)

FLAT, LEGACY, HIERARCHICAL, LONG = LedgerLayout


@pytest.mark.parametrize(
    ("layout", "ledger_id", "path"),
    [
        (FLAT, 5, "/ledgers/L0000000005"),
        (LEGACY, 5, "/ledgers/00/0000/L0005"),
        (LEGACY, 2**31 - 1, "/ledgers/21/4748/L3647"),
        (HIERARCHICAL, 5, "/ledgers/00/0000/L0005"),
        (HIERARCHICAL, 2**31 - 2, "/ledgers/21/4748/L3646"),
        (HIERARCHICAL, 2**31 - 1, "/ledgers/000/0000/0021/4748/L3647"),
        (HIERARCHICAL, 2**63 - 1, "/ledgers/922/3372/0368/5477/L5807"),
        (LONG, 5, "/ledgers/000/0000/0000/0000/L0005"),
    ],
)
def test_paths_are_bookkeepers(layout, ledger_id, path):
    assert ledger_path("/ledgers", ledger_id, layout) == path
    assert ledger_path("/ledgers/", ledger_id, layout) == path
    assert ledger_id_at("/ledgers", path, layout) == ledger_id


@given(st.integers(0, LEDGER_ID_MAX), st.sampled_from(LedgerLayout))
def test_path_and_id_are_inverse(ledger_id, layout):
    if ledger_id >= 10**10 and layout in (FLAT, LEGACY):
        with pytest.raises(ValueError, match="no path"):
            ledger_path("/l", ledger_id, layout)
    else:
        assert ledger_id_at("/l", ledger_path("/l", ledger_id, layout), layout) == ledger_id


@pytest.mark.parametrize("ledger_id", [-1, 2**63])
def test_what_is_no_ledger_id_is_a_mistake_of_the_caller(ledger_id):
    with pytest.raises(ValueError, match="not a ledger id"):
        ledger_path("/ledgers", ledger_id, HIERARCHICAL)


@pytest.mark.parametrize(
    "path",
    [
        "/ledgers",
        "/ledgers/LAYOUT",
        "/ledgers/available/L0005",
        "/ledgers/00/0000/L005",
        "/ledgers/00/0000/x0005",
        "/ledgers/00/0000/L0005/x",
        "/other/00/0000/L0005",
        "/ledgers/21/4748/L3647",  # this id lives in the long form
        "/ledgers/000/0000/0000/0000/L0005",  # and this one in the short form
        "/ledgers/999/9999/9999/9999/L9999",  # beyond 63 bits
        "/ledgers/\u0660\u0660/0000/L0005",
    ],
)
def test_other_nodes_are_no_ledgers(path):
    assert ledger_id_at("/ledgers", path, HIERARCHICAL) is None


@pytest.mark.parametrize(
    ("data", "layout"),
    [
        (b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1", HIERARCHICAL),
        (b"2\norg.apache.bookkeeper.meta.LegacyHierarchicalLedgerManagerFactory:1", LEGACY),
        (b"2\norg.apache.bookkeeper.meta.LongHierarchicalLedgerManagerFactory:1\n", LONG),
        (b"2\norg.apache.bookkeeper.meta.FlatLedgerManagerFactory:1", FLAT),
        (b"2\norg.apache.pulsar.metadata.bookkeeper.PulsarLedgerManagerFactory:1", HIERARCHICAL),
        (b"1\nflat:1", FLAT),
        (b"1\nhierarchical:1", HIERARCHICAL),
    ],
)
def test_layouts(data, layout):
    assert decode_layout(data) is layout


def test_an_unknown_manager_is_refused():
    with pytest.raises(FormatError, match="MSLedgerManagerFactory"):
        decode_layout(b"2\norg.apache.bookkeeper.meta.MSLedgerManagerFactory:1")


@given(st.binary() | st.binary().map(lambda tail: b"2\n" + tail))
def test_any_bytes_are_a_layout_or_a_format_error(data):
    with contextlib.suppress(FormatError):
        assert isinstance(decode_layout(data), LedgerLayout)
