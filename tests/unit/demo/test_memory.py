import os
import time

import psutil

from tiering_assets.demo.memory import PeakMemory


def test_a_process_named_twice_counts_once():
    ours = psutil.Process().memory_info().rss
    with PeakMemory([os.getpid(), os.getpid()]) as memory:
        deadline = time.monotonic() + 60
        while not memory.peak_bytes and time.monotonic() < deadline:
            time.sleep(0.05)
    children = sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))
    assert ours // 2 < memory.peak_bytes < 2 * ours + children
