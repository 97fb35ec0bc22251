"""First and last entries are read through the broker, each once, of however many ledgers."""

from types import SimpleNamespace
from typing import Any

import pytest

from tiering_assets.change.confirm import rehearse
from tiering_assets.ground.stack import _in_threads


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_each_ledgers_first_and_last_entry_is_read_once(count):
    read: list[tuple[int, int]] = []
    stack: Any = SimpleNamespace(
        monotonic=lambda: 0.0,
        settings=SimpleNamespace(publish=SimpleNamespace(confirm_timeout_s=1.0)),
        broker=SimpleNamespace(read_entry=lambda _topic, *entry: read.append(entry)),
        in_parallel=_in_threads,
    )
    rehearse(stack, "t", {ledger_id: ledger_id % 2 for ledger_id in range(count)})
    expected = {(n, 0) for n in range(count)} | {(n, n % 2) for n in range(count)}
    assert len(read) == len(expected)
    assert set(read) == expected
