"""Ctrl-C as a terminal sends it: to the command and to all it started, under budgets that allow
little.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.support.cli_shell import COMMAND
from tests.support.fault_lab import YOUNGEST_S
from tests.support.http_proxy import Do, HttpProxy
from tests.support.tiered_cluster import wait_until
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.explain.backlog import explain_ledger
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.settings import SparkSettings

pytestmark = [pytest.mark.stack, pytest.mark.fault]

PROMISED_S = 10.0
SLOW = {"upload_bytes_per_s": 1_500_000, "store_requests_per_s": 20}  # seconds a block


class Command:
    """`tierkeeper ledger offload` in a terminal of its own; it ends with the test."""

    def __init__(self, settings, ledger_id, directory, *options):
        self._said = directory / "said"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TIERKEEPER_")}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [*COMMAND, "ledger", "offload", str(ledger_id), "--execute", *options],
                env=kept | environment_of(settings),
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ctrl_c(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self):
        """Seconds until it has ended, as it must."""
        before = time.monotonic()
        assert self.process.wait(60) == 130, self.said()
        return time.monotonic() - before

    def said(self):
        return self._said.read_text(encoding="utf-8", errors="replace")


def parts_of(method, path):
    return method == "PUT" and "partNumber=" in path


def changes_of_an_upload(method, path):
    """Its parts, two at a time, and its completion, where a run before had sent them."""
    return method in ("PUT", "POST") and "uploadId=" in path


@pytest.mark.parametrize(
    "runner", ["local", pytest.param("spark", marks=pytest.mark.spark)], ids=lambda name: name
)
def test_a_copy_under_a_small_budget_ends_in_time_and_goes_on_later(lab, tmp_path, runner):
    namespace = lab.namespace("ctrl-c")
    topic = lab.multi_block_topic(namespace)
    sent: list[str] = []

    def rule(method, path):
        if parts_of(method, path):
            sent.append(path)
        return Do.PASS

    with HttpProxy(lab.settings.store.endpoint, rule) as proxy:
        lab.read_from(namespace, proxy.url)
        settings = replace(
            lab.settings,
            store=replace(lab.settings.store, endpoint=proxy.url),
            budget=replace(lab.settings.budget, runs_max=1, **SLOW),
            spark=SparkSettings(master="local[1,4]"),
        )
        with Command(settings, topic.ledger_id, tmp_path, "--runner", runner) as command:
            wait_until(lambda: sent or command.process.poll() is not None, "a part", timeout_s=200)
            assert command.process.poll() is None, command.said()
            command.ctrl_c()
            assert command.ended() < PROMISED_S
    assert "interrupted: what is under way is given up" in command.said()
    assert "giving up 1 ledgers' claims" in command.said()
    lab.read_from(namespace, lab.settings.store.endpoint)
    with lab.open(lab.settings) as stack:
        because = explain_ledger(stack, topic.ledger_id).because
        assert (because.reason, because.detail[:11]) == (BacklogReason.FAILED, "interrupted"), (
            because
        )
        [outcome] = offload_batch(stack, [topic.ledger_id])  # nobody's claim is in the way
        assert (outcome.state, outcome.error) == ("published", None)
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_store_that_does_not_answer_holds_nobody_up(lab, tmp_path):
    namespace = lab.namespace("ctrl-c")
    topic = lab.multi_block_topic(namespace)
    stalled: list[str] = []

    def rule(method, path):
        if stalled or changes_of_an_upload(method, path):
            stalled.append(path)
            return Do.STALL
        return Do.PASS

    with HttpProxy(lab.settings.store.endpoint, rule, stall_s=300.0) as proxy:
        lab.read_from(namespace, proxy.url)
        settings = replace(
            lab.settings,
            store=replace(lab.settings.store, endpoint=proxy.url, read_timeout_s=300.0),
            offload=replace(lab.settings.offload, claim_ttl_s=YOUNGEST_S),
        )
        for presses in (1, 2):
            with Command(settings, topic.ledger_id, tmp_path, "--runner", "local") as command:
                wait_until(
                    lambda: stalled or command.process.poll() is not None, "a part", timeout_s=100
                )
                assert command.process.poll() is None, command.said()
                for _ in range(presses):
                    command.ctrl_c()
                    time.sleep(0.5)
                assert command.ended() < (PROMISED_S if presses == 1 else 1.0)
            assert ("ended at once" in command.said()) is (presses == 2)
            assert "nothing is lost" in command.said()
            stalled.clear()
            with lab.open(lab.settings) as stack:
                lab.older(stack)  # the claim that could not be given up has run out
