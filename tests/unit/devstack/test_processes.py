"""The watchdog against real processes: small shells instead of servers."""

import os
import signal
import subprocess
import sys
import time
from uuid import uuid4

import psutil
import pytest

from tests.support.leftovers import wait_for_processes, wait_until_none
from tiering_assets.resources.devstack.processes import (
    ProcessRef,
    Supervisor,
    end_group,
    is_alive,
    rss_bytes,
)

# A shell with a child of its own, deaf to SIGTERM, as bin/pulsar's chain of programs might be.
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300"]
OWNER = f"""
import os, sys, time
from pathlib import Path
from tiering_assets.resources.devstack.processes import Supervisor
supervisor = Supervisor(sys.argv[1])
for _ in range(2):
    supervisor.spawn({STUBBORN!r}, environment=os.environ, cwd=Path("."), log=Path(os.devnull))
print("started", flush=True)
time.sleep(300)
"""


@pytest.fixture
def supervisor():
    owner = Supervisor(uuid4().hex)
    yield owner
    owner.close()


def spawn(supervisor, tmp_path, argv):
    return supervisor.spawn(argv, environment=os.environ, cwd=tmp_path, log=tmp_path / "log")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_groups_end_with_their_owner(number):
    stack_id = uuid4().hex
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, stack_id],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "started\n"
        # the watchdog and two shells; on a busy machine the second is still to exec
        assert wait_for_processes(stack_id, 3)
        owner.send_signal(number)
        try:
            owner.wait(timeout=60)
        finally:
            owner.kill()
    assert wait_until_none(stack_id) == {}


def test_a_child_that_was_never_told_to_go_ends(tmp_path):
    """What is left of a parent killed between fork and registration: a shell at end-of-file."""
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'read -r go && exec "$@" </dev/null',
            "sh",
            "touch",
            str(tmp_path / "ran"),
        ],
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()


def test_a_group_is_killed_when_it_does_not_listen(supervisor, tmp_path):
    ref = spawn(supervisor, tmp_path, STUBBORN)
    assert is_alive(ref)
    assert rss_bytes(ref) > 0
    supervisor.end(ref, grace_s=0.2)
    assert not is_alive(ref)
    assert rss_bytes(ref) == 0


def test_output_and_exit_code_are_kept(supervisor, tmp_path):
    ref = spawn(supervisor, tmp_path, ["/bin/sh", "-c", "echo said; exit 3"])
    deadline = time.monotonic() + 60
    while is_alive(ref) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert supervisor.reap(ref) == 3
    assert (tmp_path / "log").read_text() == "said\n"


def test_a_released_child_outlives_the_watchdog_and_is_found_by_reference(tmp_path):
    supervisor = Supervisor(uuid4().hex)
    try:
        ref = spawn(supervisor, tmp_path, ["sleep", "300"])
        supervisor.release()
        assert is_alive(ref)
        end_group(ref)
        assert not is_alive(ref)
    finally:
        supervisor.close()


def test_a_process_with_the_same_pid_but_another_birth_is_left_alone(supervisor, tmp_path):
    ref = spawn(supervisor, tmp_path, ["sleep", "300"])
    stranger = ProcessRef(ref.pid, ref.created_at_s - 3600)
    assert not is_alive(stranger)
    end_group(stranger, grace_s=0.1)
    assert psutil.Process(ref.pid).is_running()
    assert is_alive(ref)
