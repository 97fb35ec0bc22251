"""Find every process of one stack by the marker in its environment, whoever its parent is now."""

import time
from pathlib import Path

from tiering_assets.resources.devstack.processes import STACK_ID_VARIABLE


def processes_of(stack_id: str) -> dict[int, str]:
    """Return pid -> command of each live process (zombies have no environment)."""
    marker = f"{STACK_ID_VARIABLE}={stack_id}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
        except (OSError, UnicodeDecodeError):
            continue
    return found


def wait_for_processes(stack_id: str, count: int, timeout_s: float = 60.0) -> bool:
    """Whether `count` of them lived at once within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while len(processes_of(stack_id)) < count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def wait_until_none(stack_id: str, timeout_s: float = 60.0) -> dict[int, str]:
    """Return what still lives after at most `timeout_s`; empty is what a test wants."""
    deadline = time.monotonic() + timeout_s
    while (left := processes_of(stack_id)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
