"""`make soak MINUTES=10`: automation on a live cluster, with nothing done by hand.

Owns: steady producers, the real Dagster daemon with its sensors, and between them the faults of an
ordinary bad day: the daemon, a run, the broker and a bookie are killed, and DAGSTER_HOME is lost
and rebuilt. What must hold at the end is in build/soak.json, each figure taken from the broker,
from BookKeeper's metadata or from the records, not from Dagster; any violation ends with exit code
1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pulsar

from tests.support.soak_home import ROOT, Home
from tests.support.soak_lags import lags
from tests.support.soak_traffic import Producer, read_all
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records.models import Disturbance, Publication
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.settings_sources import load_settings

TOPICS = 4
PER_S = 40.0
ENTRIES_MAX = 1000
THRESHOLD_S = 10
LAG_S = 30
PENDING_AGE_S = 60
GRACE_S = 420  # after the producers stop: age, lag, a release, and the slowest retry of each
FAULTS_AT = {"daemon": 0.2, "run": 0.35, "broker": 0.5, "bookie": 0.65, "home": 0.8}
DONE = {LedgerState.RELEASED}


@dataclass
class Soak:
    """One soak's servers, and what happened."""

    stack: DevStack
    home: Home
    environment: dict[str, str]
    faults: dict[str, str] = field(default_factory=dict)
    daemon_down: float = 0.0

    def open(self) -> Any:
        return open_stack(load_settings(environ=self.environment).settings)

    def say(self, line: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")

    # ----- faults

    def kill_daemon(self) -> None:
        self.home.kill_daemon()
        time.sleep(5)
        self.home.start()

    def kill_run(self) -> None:
        deadline = time.monotonic() + 90
        while not (runs := self.home.runs()) and time.monotonic() < deadline:
            time.sleep(0.2)
        if not runs:
            raise RuntimeError("no run was there to be killed")
        with suppress(psutil.NoSuchProcess):
            runs[0].send_signal(signal.SIGKILL)

    def kill_broker(self) -> None:
        self.stack.stop_server("broker", kill=True)
        self.stack.start_server("broker")

    def kill_bookie(self) -> None:
        self.stack.stop_server("bookie1", kill=True)
        time.sleep(15)
        self.stack.start_server("bookie1")

    def lose_home(self) -> None:
        self.home.stop()
        self.home.lose()
        self.home.make()
        done = self.home.run("dagster", "rebuild")
        if done.returncode != 0:
            raise RuntimeError(
                f"dagster rebuild ended with {done.returncode}: {done.stderr[-800:]}"
            )
        self.home.start()

    def strike(self, name: str) -> None:
        acts: dict[str, Callable[[], None]] = {
            "daemon": self.kill_daemon,
            "run": self.kill_run,
            "broker": self.kill_broker,
            "bookie": self.kill_bookie,
            "home": self.lose_home,
        }
        began = time.monotonic()
        acts[name]()
        self.faults[name] = f"{time.monotonic() - began:.1f} s"
        self.say(f"{name}: killed and back after {self.faults[name]}")


def topics_of(count: int) -> list[str]:
    return [f"persistent://public/default/soak-{number}" for number in range(count)]


def overdue_of(stack: Stack) -> list[str]:
    """Closed ledgers that are not released yet, with their states. Policy wants all of them
    gone.
    """
    return [
        f"{view.ledger_id} of {view.topic}: {view.state.value}"
        for view in survey(stack)
        if view.state not in DONE | {LedgerState.OPEN} and view.bytes
    ]


def wait_until_done(soak: Soak, seconds: float) -> list[str]:
    """What is still overdue when nothing is, or when time is up."""
    deadline = time.monotonic() + seconds
    while True:
        with soak.open() as stack:
            overdue = overdue_of(stack)
        if not overdue or time.monotonic() > deadline:
            return overdue
        soak.say(f"{len(overdue)} ledgers are not released yet, such as {overdue[0]}")
        time.sleep(10)


def figures(soak: Soak, producers: list[Producer], overdue: list[str]) -> dict[str, Any]:
    """Everything that the result tells. Topics are read back last: that loads nothing new."""
    with soak.open() as stack:
        views = [view for view in survey(stack) if "/soak-" in view.topic]
        publications = [
            ledger
            for stored in stack.book.iter_records(Publication, "publications/")
            for ledger in stored.record.ledgers
        ]
        disturbances = list(stack.book.iter_records(Disturbance, "disturbances/"))
        behind = lags(stack, timedelta(seconds=THRESHOLD_S))
    read, wrong = 0, [f"{one.topic}: {one.refused[:2]}" for one in producers if one.refused]
    client = pulsar.Client(soak.stack.endpoints.service_url, logger=quiet())
    try:
        for one in producers:
            count, problems = read_all(client, one.topic, one.acknowledged)
            read += count
            wrong += problems
    finally:
        client.close()
    per_topic = {
        one.topic: {
            "ledgers": sum(view.topic == one.topic for view in views),
            "natural": -(-one.acknowledged // ENTRIES_MAX),
            "reloads": sum(topic_named(d.record.ml_name) == one.topic for d in disturbances),
        }
        for one in producers
    }
    produced = sum(one.acknowledged for one in producers)
    return {
        "messages_produced": produced,
        "messages_read": read,
        "content_equal": not wrong and read == produced,
        "ledgers_published": len({(one.ledger_id, one.uid) for one in publications}),
        "ledgers_released": sum(view.state in DONE for view in views),
        "overdue": len(overdue),
        "disturbances": len(disturbances),
        **behind,
        "max_ack_gap_s": round(max(one.max_gap_s for one in producers), 2),
        "ledgers_per_topic_vs_natural": per_topic,
        "faults": soak.faults,
        "wrong": wrong[:20],
        "overdue_ledgers": overdue[:20],
    }


def topic_named(ml_name: str) -> str:
    tenant, namespace, _persistent, topic = ml_name.split("/")
    return f"persistent://{tenant}/{namespace}/{topic}"


def violations(result: dict[str, Any], faults: Iterable[str]) -> list[str]:
    """What must not be. Each broker's end and each reload of ours may close one ledger early."""
    said = [*result["wrong"]]
    if not result["content_equal"]:
        said.append(f"read {result['messages_read']} of {result['messages_produced']} messages")
    if result["overdue"]:
        said.append(f"{result['overdue']} ledgers are overdue")
    if result["ledgers_released"] == 0:
        said.append("nothing was released")
    early = 1 + ("broker" in faults) + ("bookie" in faults)
    for topic, count in result["ledgers_per_topic_vs_natural"].items():
        if count["ledgers"] > count["natural"] + count["reloads"] + early:
            said.append(f"{topic}: {count}: more ledgers than rollovers and publications explain")
    said += [f"{name} was not struck" for name in FAULTS_AT if name not in result["faults"]]
    return said


def quiet() -> Any:
    return pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")


def soak_for(minutes: float, directory: Path, runner: str) -> dict[str, Any]:
    options = StackOptions(
        ledger_entries_max=ENTRIES_MAX, broker_conf={"brokerDeduplicationEnabled": "true"}
    )
    policy = directory / "tiering.toml"
    policy.write_text(f"[default]\nmanagedLedgerOffloadThresholdInSeconds = {THRESHOLD_S}\n")
    with DevStack.start(directory / "stack", options) as stack:
        environment = stack.environment() | {
            "TIERKEEPER_AUTO_ENABLED": "true",
            "TIERKEEPER_AUTO_INTERVAL_S": "5",
            "TIERKEEPER_AUTO_RETRY_FIRST_S": "15",
            "TIERKEEPER_AUTO_RETRY_MAX_S": "60",
            "TIERKEEPER_AUTO_DISCOVER_EVERY_S": "120",
            "TIERKEEPER_AUTO_SCRUB_EVERY_S": "180",
            "TIERKEEPER_DAGSTER_RUNNER": runner,
            "TIERKEEPER_OFFLOAD_CLAIM_TTL_S": "60",
            "TIERKEEPER_POLICY_FILE": str(policy),
            "TIERKEEPER_PUBLISH_PENDING_AGE_S": str(PENDING_AGE_S),
            "TIERKEEPER_RELEASE_DELETION_LAG_S": str(LAG_S),
            "TIERKEEPER_DISTURB_PER_TOPIC_HOUR_MAX": "600",
        }
        home = Home(directory / "home", environment)
        home.make()
        soak = Soak(stack=stack, home=home, environment=environment)
        client = pulsar.Client(stack.endpoints.service_url, logger=quiet())
        try:
            home.start()
            proven = home.run("catalogue", "prove")  # from now on rows nominate
            if proven.returncode != 0:
                raise RuntimeError(f"catalogue prove: {proven.stderr[-800:]}")
            producers = [Producer(client, topic, PER_S) for topic in topics_of(TOPICS)]
            for one in producers:
                one.start()
            began = time.monotonic()
            for name, share in FAULTS_AT.items():
                time.sleep(max(0.0, began + share * minutes * 60 - time.monotonic()))
                soak.strike(name)
            time.sleep(max(0.0, began + minutes * 60 - time.monotonic()))
            for one in producers:
                one.stop()
            soak.say("producers stopped")
            overdue = wait_until_done(soak, GRACE_S)
            home.stop()
            return figures(soak, producers, overdue)
        finally:
            client.close()
            home.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--runner", choices=("local", "spark"), default="local")
    parser.add_argument("--keep", action="store_true", help="keep the servers' logs")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped
    directory = Path(tempfile.mkdtemp(prefix="tierkeeper-soak-"))
    try:
        result = soak_for(asked.minutes, directory, asked.runner)
        result["minutes"] = asked.minutes
        result["violations"] = violations(result, result["faults"])
        out = ROOT / "build" / "soak.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(result, indent=2) + "\n")
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return 1 if result["violations"] else 0
    finally:
        if asked.keep:
            sys.stderr.write(f"kept: {directory}\n")
        else:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
