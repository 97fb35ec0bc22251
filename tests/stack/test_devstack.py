"""The stack itself: messages survive the round trip, and no server survives its owner."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support.leftovers import processes_of, wait_until_none
from tests.support.standard_topics import standard_topics
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.state import STATE_FILE
from tiering_assets.resources.devstack.traffic import (
    TopicSpec,
    consume_all,
    expected_content,
    produce,
    seal,
)
from tiering_assets.resources.errors import IntegrityError, PrerequisiteError

pytestmark = pytest.mark.stack
FAST = StackOptions(bookies=0, with_broker=False)
CLI = "from tiering_assets.cli.main import main; main()"
OWNER = """
import sys, time
from pathlib import Path
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
with DevStack.start(Path(sys.argv[1]), StackOptions(bookies=0, with_broker=False)) as stack:
    print(stack.stack_id, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("spec", standard_topics(scale=0.1), ids=lambda spec: spec.topic)
def test_what_is_read_is_what_was_sent(endpoints, spec):
    sent = produce(endpoints, spec)
    assert sent == expected_content(spec)
    seal(endpoints, spec)  # the reader meets a closed ledger and a topic loaded anew
    assert consume_all(endpoints, spec) == sent


def test_a_chunked_message_is_whole_again(endpoints):
    spec = TopicSpec(
        topic="public/default/chunked", messages=1, payload_bytes=12_000_000, chunked=True
    )
    sent = produce(endpoints, spec)
    assert consume_all(endpoints, spec) == sent


def test_a_doubled_topic_is_found(endpoints):
    spec = TopicSpec(topic="public/default/doubled", messages=10, payload_bytes=10)
    produce(endpoints, spec)
    produce(endpoints, spec)
    with pytest.raises(IntegrityError, match="messages=20"):
        consume_all(endpoints, spec)


def test_limits_seal_ledgers(endpoints):
    spec = TopicSpec(topic="public/default/rolled", messages=4500, payload_bytes=64)
    produce(endpoints, spec)
    port = urlsplit(endpoints.admin_url).port
    _, body = http_call(port, "GET", f"/admin/v2/persistent/{spec.topic}/internalStats")
    ledgers = json.loads(body)["ledgers"]
    assert [one["entries"] for one in ledgers if one["entries"]][:2] == [2000, 2000]


def test_the_broker_offloads_by_itself_to_our_bucket(stack, endpoints):
    spec = TopicSpec(topic="public/default/offloaded", messages=2500, payload_bytes=512)
    sent = produce(endpoints, spec)
    seal(endpoints, spec)
    port = urlsplit(endpoints.admin_url).port
    path = f"/admin/v2/persistent/{spec.topic}"
    _, last = http_call(port, "GET", f"{path}/lastMessageId")
    status, said = http_call(port, "PUT", f"{path}/offload", body=last)
    assert status in (200, 204), said
    deadline = time.monotonic() + 60
    while True:
        outcome = json.loads(http_call(port, "GET", f"{path}/offload")[1])
        if outcome["status"] != "RUNNING" or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert outcome["status"] == "SUCCESS", outcome
    ledgers = json.loads(http_call(port, "GET", f"{path}/internalStats")[1])["ledgers"]
    assert ledgers[0]["offloaded"] is True
    assert consume_all(endpoints, spec) == sent


def test_a_bookie_comes_back_with_its_data(stack_to_stop):
    spec = TopicSpec(topic="public/default/restarted", messages=300, payload_bytes=1000)
    stack = stack_to_stop
    sent = produce(stack.endpoints, spec)
    stack.stop_server("bookie1")
    assert [one.name for one in stack.status() if not one.alive] == ["bookie1"]
    assert consume_all(stack.endpoints, spec) == sent  # the other copy of each entry
    stack.start_server("bookie1")
    assert all(one.alive for one in stack.status())


def test_every_port_is_on_the_loopback_address_and_the_filer_is_closed(stack):
    listening = set()
    for server in stack.status():
        for connection in psutil.Process(server.pid).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                listening.add(connection.laddr.ip.removeprefix("::ffff:"))
    assert listening == {"127.0.0.1"}
    ports = json.loads((stack.directory / STATE_FILE).read_text())["ports"]
    status, _ = http_call(ports["s3.filer"], "POST", "/buckets/tierkeeper/stranger", body=b"x")
    assert status == 401


def start_owner(directory: Path) -> tuple[subprocess.Popen[str], str]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    stack_id = owner.stdout.readline().strip()
    return owner, stack_id


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_server_outlives_its_owner(tmp_path, number):
    owner, stack_id = start_owner(tmp_path)
    with owner:
        assert len(processes_of(stack_id)) == 3  # S3, ZooKeeper, the watchdog
        owner.send_signal(number)
        owner.wait(timeout=60)
    assert wait_until_none(stack_id) == {}


def test_no_server_outlives_an_owner_killed_while_it_starts(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / STATE_FILE).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    owner.kill()
    owner.wait()
    stack_id = json.loads((tmp_path / STATE_FILE).read_text())["stack_id"]
    assert wait_until_none(stack_id) == {}


def test_a_failed_start_leaves_nothing_and_shows_the_log(tmp_path, monkeypatch):
    before = {one.pid for one in psutil.Process().children()}
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        port = occupied.getsockname()[1]
        with pytest.raises(PrerequisiteError, match=f"port {port}, wanted for zookeeper, is taken"):
            DevStack.start(
                tmp_path, StackOptions(bookies=0, with_broker=False, ports={"zookeeper": port})
            )
    stack_ids = []
    real = DevStack._wait_ready

    def killed_first(self, name):
        stack_ids.append(self.stack_id)
        os.kill(self._ref(name).pid, signal.SIGKILL)
        real(self, name)

    monkeypatch.setattr(DevStack, "_wait_ready", killed_first)
    with pytest.raises(PrerequisiteError, match="ended before"):
        DevStack.start(tmp_path, FAST)
    assert wait_until_none(stack_ids[0]) == {}
    assert not (tmp_path / STATE_FILE).exists()
    assert {one.pid for one in psutil.Process().children()} == before


def test_a_broker_that_ends_while_it_starts_is_started_once_more_and_its_error_told(
    tmp_path, monkeypatch
):
    started: list[str] = []
    said: list[str] = []
    spawn = DevStack._spawn

    def first_one_ends(self, name, supervisor, broker_conf=None):
        spawn(self, name, supervisor, broker_conf)
        started.append(name)
        if name == "broker" and started.count(name) == 1:
            self._state.plan.log(name).write_text("at 1 ERROR session lost\n" + "closing\n" * 99)
            os.kill(self._ref(name).pid, signal.SIGKILL)

    monkeypatch.setattr(DevStack, "_spawn", first_one_ends)
    with DevStack.start(tmp_path, StackOptions(bookies=1), report=said.append) as stack:
        assert started.count("broker") == 2
        assert all(one.alive for one in stack.status())
        assert "broker is started once more" in "\n".join(said)
        assert "at 1 ERROR session lost" in "\n".join(said)


def test_a_detached_stack_stays_until_it_is_taken_down(tmp_path):
    directory = tmp_path / "stack"

    def tierkeeper(*words: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-c", CLI, "stack", *words, "--dir", str(directory), "--json"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "{}")

    code, shown = tierkeeper("up", "--bookies", "0", "--no-broker")
    assert code == 0
    state = json.loads((directory / STATE_FILE).read_text())
    try:
        assert stat.S_IMODE((directory / STATE_FILE).stat().st_mode) == 0o600
        assert state["credentials"]["secret_key"] not in json.dumps(shown)
        assert len(processes_of(state["stack_id"])) == 2  # no watchdog is left
        again = tierkeeper("up", "--bookies", "0", "--no-broker")[1]
        assert [one["pid"] for one in again["servers"]] == [one["pid"] for one in shown["servers"]]
        code, status = tierkeeper("status")
        assert code == 0
        assert [one["pid"] for one in status["servers"]] == [one["pid"] for one in shown["servers"]]
        assert status["endpoints"] == shown["endpoints"]
        os.kill(shown["servers"][0]["pid"], signal.SIGKILL)
        assert tierkeeper("status")[0] == 1
    finally:
        code, down = tierkeeper("down")
    assert (code, down["stopped"]) == (0, ["zookeeper"])
    assert wait_until_none(state["stack_id"]) == {}
    assert not (directory / "data").exists()
    assert (directory / "logs" / "zookeeper.log").stat().st_size > 0
    assert tierkeeper("down") == (0, down | {"stopped": []})
