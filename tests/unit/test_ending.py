"""Ctrl-C, sent to processes of our own as a terminal sends it."""

import signal
import subprocess
import sys
import time

import pytest

FIRST = b"interrupted: what is under way is given up"
WITHIN_S = 1.5

BODIES = {
    # what the process does, whether it gives up by itself
    "gives up": ("try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(130)", True),
    "waits for a budget": ("try:\n    ending.pause(60)\nfinally:\n    sys.exit(130)", True),
    "joins a thread": (
        "threading.Thread(target=time.sleep, args=[60]).start()\n"
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(130)",
        False,
    ),
    "goes on": (
        "while True:\n    try:\n        time.sleep(60)\n    except BaseException: pass",
        False,
    ),
}


def started(body):
    code = (
        "import sys, threading, time\nfrom resources import ending\n"
        f"ending.obey_ctrl_c(within_s={WITHIN_S})\nprint('ready', flush=True)\n{body}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.3)  # it is inside its `try` by then
    return process


def told(process, *, timeout_s):
    before = time.monotonic()
    _, said = process.communicate(timeout=timeout_s)
    assert process.returncode == 128 + signal.SIGINT  # as shells have it
    return said, time.monotonic() - before


@pytest.mark.parametrize("doing", BODIES)
def test_it_ends_in_time_whatever_it_does_and_says_what_it_waits_for(doing):
    body, by_itself = BODIES[doing]
    process = started(body)
    process.send_signal(signal.SIGINT)
    said, seconds = told(process, timeout_s=30)
    assert FIRST in said
    assert (b"not given up within" in said) is not by_itself
    assert by_itself or seconds >= WITHIN_S - 0.5
    assert by_itself or b"the same command goes on where this one stopped" in said


def test_the_second_one_ends_it_at_once():
    process = started(BODIES["goes on"][0].replace("60", "600"))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said, _seconds = told(process, timeout_s=30)
    assert b"interrupted again: ended at once" in said
