"""Whether a person has asked this process to end, and how long it may still take.

Owns: one flag for the whole process, as a signal is the process's. What waits for a budget asks it
and stops waiting: giving up what a run holds costs a few small requests, and nobody wants to wait
for those. A process that cannot end by then, whatever it waits for, is ended: what it holds runs
out by itself, as if it had been killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

WITHIN_S = 8.0  # of the ten that are promised: Python and a JVM take their time to leave
INTERRUPTED = 130  # as shells have it: 128 and the number of the signal

_asked = threading.Event()


def asked() -> bool:
    """Whether this process was asked to end."""
    return _asked.is_set()


def pause(seconds: float) -> None:
    """Sleep, but not past the moment when the process is asked to end."""
    _asked.wait(seconds)


def obey_ctrl_c(*, within_s: float = WITHIN_S) -> None:
    """From now on Ctrl-C ends this process in order within `within_s` seconds, the second at once.

    For the main thread, which gets KeyboardInterrupt. Joining threads and leaving counts, too.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        if asked():
            _leave("interrupted again: ended at once")
        _asked.set()
        overdue = threading.Timer(within_s, _leave, [f"not given up within {within_s:.0f} s"])
        overdue.daemon = True
        overdue.start()
        _say(
            "interrupted: what is under way is given up, which takes no longer than "
            f"{within_s:.0f} s; Ctrl-C again ends it at once"
        )
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end)


def _leave(why: str) -> None:
    _say(
        f"{why}; nothing is lost: a claim that is still held runs out by itself, and the same "
        "command goes on where this one stopped"
    )
    os._exit(INTERRUPTED)


def _say(sentence: str) -> None:
    """Past Python's buffers, whose lock the interrupted thread may hold."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"\n{sentence}\n".encode())
