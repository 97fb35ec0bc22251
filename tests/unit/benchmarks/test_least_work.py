"""The least work sends as many bytes as the entries have, in order, in parts of their sizes."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.least_work import _filled, shared_out
from tiering_assets.resources.bookkeeper.runs import Run


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1), st.integers(1, 70))
def test_parts_hold_the_bytes_of_all_runs_once_whether_these_have_records_or_not(found, part_bytes):
    runs = []
    for number, data in enumerate(found):
        if number % 2:
            runs.append(Run.of([(number, data, 0)]))
        else:  # records have more than the payload: as many bytes are taken as that has
            records = memoryview(bytearray(data + b"more"))
            runs.append(Run(number, 1, len(data), records=records))
    size = sum(map(len, found))
    sizes = [min(part_bytes, size - at) for at in range(0, size, part_bytes)]
    buffers = [memoryview(bytearray(part_bytes)) for _ in range(3)]
    parts = [bytes(part) for part in _filled(runs, sizes, buffers)]
    assert [len(part) for part in parts] == sizes
    assert b"".join(parts) == b"".join(found)


@given(st.lists(st.integers(), min_size=1), st.integers(1, 9))
def test_tasks_share_all_blocks_evenly_and_none_has_nothing_to_do(blocks, tasks):
    shares = list(shared_out(blocks, tasks))
    assert [block for share in shares for block in share] == blocks
    assert len(shares) == min(tasks, len(blocks))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
