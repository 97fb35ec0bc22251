"""Simulated servers with a topic whose oldest ledger was tiered, released, and then trimmed."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import EVERYTHING
from tiering_assets.release.work import Released

TOPIC = "t/ns/persistent/orders"
DAY_S, HOUR_S = 86_400, 3_600
# Why a plan as a whole may not be carried out, and what the command then says.
WRONG_PLANS = {
    "kill switch": "everything is held",
    "too old": "more than release.plan_valid_s",
    "other cluster": "the plan is of instance another",
    "no plan": "no such plan",
}


class TrimmedCluster:
    """Ledgers 0 to 2 are published, 3 is open; 0 was released a day after."""

    def __init__(self):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.broker = self.site.broker
        self.broker.create_topic(TOPIC)
        for _ in range(3):
            self.broker.produce(TOPIC, [b"first", b"last"])
            self.broker.roll_over(TOPIC)
        self.process = Process(self.world, "cli", self.site)
        self.stack = self.process.stack()
        assert {one.state for one in offload_batch(self.stack, [0, 1, 2])} == {"published"}
        self.later(DAY_S)
        [released] = release_topic(self.stack, TOPIC, [0]).values()
        assert isinstance(released, Released)

    def serve_commands(self, monkeypatch, folder):
        """Commands of this process run on these servers, from an empty folder."""

        @contextmanager
        def opened(session, _runner=None):
            yield replace(self.stack, narrate=session.progress)

        monkeypatch.chdir(folder)
        monkeypatch.setattr(Session, "stack", opened)

    def trim(self, ledger_id=0):
        assert self.broker.trim(TOPIC) == ledger_id

    def later(self, seconds):
        self.world.scheduler.now += seconds

    def spoil(self, plan, kind, prefix, wrong):
        """Make a recorded plan one of WRONG_PLANS; return what to name it by."""
        if wrong == "kill switch":
            hold(self.stack, EVERYTHING, reason="incident", author="ops")
        elif wrong == "too old":
            self.later(DAY_S)
        elif wrong == "other cluster":
            [stored] = self.stack.book.iter_records(kind, prefix)
            self.stack.book.replace(stored, replace(stored.record, instance="another"))
        else:
            return "0" * 64
        return plan


def document(capsys, noun, *words, code=0):
    """What `tierkeeper NOUN delete`, or `list` without words, says as JSON."""
    capsys.readouterr()
    verb = "delete" if words else "list"
    assert run([noun, verb, *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == f"tierkeeper/{noun}-{verb}/1"
    return found
