"""Runs a command and writes what it used to a file descriptor, as JSON.

    python benchmarks/launcher.py 3 COMMAND [ARGUMENT ...] 3>used.json

A process of its own, as Linux counts the memory of whoever starts a command as the command's, too.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> int:
    descriptor, *argv = sys.argv[1:]
    began = time.perf_counter()
    child = os.posix_spawn(argv[0], argv, os.environ)
    _pid, status, used = os.wait4(child, 0)
    told = {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": used.ru_maxrss // 1024,
    }
    os.write(int(descriptor), json.dumps(told).encode())
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
