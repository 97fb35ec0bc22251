"""One kind of ledgers in one round: every contender on the same content, one after the other.

Owns: nothing is a sample that did not give back, from the object, the messages that were sent. Two
topics are made of equal content: the broker offloads one, tierkeeper the other; Spark copies the
broker's topic before it does. Who goes first alternates by round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import requests

from benchmarks.agents import AgentError, Child
from benchmarks.content import Content, Kind, content_of, iter_payloads, produce
from benchmarks.figures import Sample, joined
from benchmarks.meters import Meter
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.devstack.endpoints import Endpoints
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo

NAMESPACE = "public/default"
WORK_TIMEOUT_S = 600.0
_ADMIN_TIMEOUT_S = 60.0
_POLL_S = 0.05  # each question costs the broker a millisecond or so
FAILURES = (AgentError, TierkeeperError, requests.RequestException)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every cell works with. `servers` are the stack's pids by role."""

    endpoints: Endpoints
    stack: Stack
    servers: Mapping[str, Sequence[int]]
    local: Child
    spark: Child | None
    client: Child
    sink: Child
    sink_port: int
    block_bytes: int


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of a cell: its ledgers that hold entries (one), and how much they hold."""

    name: str
    ml_name: str
    ledgers: tuple[LedgerInfo, ...]

    @property
    def bytes(self) -> int:
        return sum(ledger.size or 0 for ledger in self.ledgers)

    @property
    def entries(self) -> int:
        return sum(ledger.entries or 0 for ledger in self.ledgers)


class Cell:
    """Measures one kind in one round; `run` returns its samples."""

    def __init__(self, bench: Bench, kind: Kind, round_number: int, messages: int) -> None:
        self._bench, self._kind = bench, kind
        self._round, self._messages = round_number, messages
        self._samples: list[Sample] = []
        self._keys: list[str] = []

    def run(self) -> list[Sample]:
        """Everything on two new topics, which are deleted in the end."""
        label = f"{self._kind.name.replace(' ', '')}-{self._round}"
        expected = content_of(iter_payloads(self._kind, self._messages))
        unique = f"{NAMESPACE}/{label}-{time.time_ns():x}"
        theirs, ours = self._produce(f"{unique}-broker"), self._produce(f"{unique}-ours")
        turns: list[Callable[[], None]] = [
            lambda: self._theirs(theirs, expected),
            lambda: self._ours(ours, expected),
            lambda: self._ceilings(ours),
        ]
        turns = turns if self._round % 2 else [turns[1], turns[2], turns[0]]
        for turn in turns:
            turn()
        self._cold_reads(ours, expected)
        self._clean(theirs, ours)
        return self._samples

    # ----- contenders

    def _theirs(self, topic: Topic, expected: Content) -> None:
        if self._bench.spark is not None:
            self._staged(self._bench.spark, "spark", topic, expected)
        self._bookies(topic, expected)
        sample = self._measure("broker", topic, lambda: self._broker_offload(topic))
        found = self._read_topic(topic.ml_name)
        keys = [
            data_key(ledger.offload.uid, ledger.ledger_id)
            for ledger in found
            if ledger.offload is not None
        ]
        if sample.error is None and len(keys) != len(topic.ledgers):
            sample = replace(sample, error=f"{len(keys)} of {len(topic.ledgers)} were offloaded")
        self._keep(sample, keys, expected)

    def _ours(self, topic: Topic, expected: Content) -> None:
        stages, keys = self._staged(self._bench.local, "ours", topic, expected)
        if any(stage.error is not None for stage in stages):
            self._samples.append(replace(stages[-1], contender="ours-release"))
            return
        local = self._bench.local
        last = self._measure(
            "ours-release",
            topic,
            lambda: local.ask(
                action="publish_and_release", ml_name=topic.ml_name, timeout_s=WORK_TIMEOUT_S
            ),
            local,
        )
        left = [i.ledger_id for i in topic.ledgers if self._bench.stack.ledgers.read(i.ledger_id)]
        if last.error is None and left:
            last = replace(last, error=f"bookies still have {left}")
        self._keep(joined("ours-release", [*stages, last]), keys, expected)

    def _staged(
        self, agent: Child, name: str, topic: Topic, expected: Content
    ) -> tuple[list[Sample], list[str]]:
        """Copy, then copy and read-back together."""
        keys: list[str] = []

        def copy() -> dict[str, Any]:
            answer = agent.ask(action="copy", ml_name=topic.ml_name, timeout_s=WORK_TIMEOUT_S)
            keys.extend(answer["keys"])
            return answer

        copied = self._measure(f"{name}-copy", topic, copy, agent)
        stages = [copied]
        if copied.error is None:
            stages.append(
                self._measure(
                    f"{name}-verify",
                    topic,
                    lambda: agent.ask(action="verify", timeout_s=WORK_TIMEOUT_S),
                    agent,
                )
            )
        copied = self._keep(copied, keys, expected)
        whole = joined(f"{name}-verify", [copied, *stages[1:]])
        self._samples.append(whole)
        return [copied, *stages[1:]], keys

    def _bookies(self, topic: Topic, expected: Content) -> None:
        local = self._bench.local
        ledger_id = topic.ledgers[0].ledger_id
        local.ask(action="open_ledger", ledger_id=ledger_id, timeout_s=WORK_TIMEOUT_S)
        sample = self._measure(
            "ceiling-bookies",
            topic,
            lambda: local.ask(action="read_bookies", timeout_s=WORK_TIMEOUT_S),
            local,
        )
        answer = local.ask(
            action="hash_bookies", batched=self._kind.batched, timeout_s=WORK_TIMEOUT_S
        )
        self._samples.append(self._judged(sample, [answer], expected))

    def _ceilings(self, topic: Topic) -> None:
        bench = self._bench
        sink = {**bench.servers, "store": [bench.sink.pid]}
        sink_url = f"http://127.0.0.1:{bench.sink_port}"
        self._multipart("ceiling-store", topic, None, bench.servers)
        self._multipart("ceiling-sink", topic, sink_url, sink)

    def _multipart(
        self,
        contender: str,
        topic: Topic,
        endpoint: str | None,
        servers: Mapping[str, Sequence[int]],
    ) -> None:
        client = self._bench.client
        sample = self._measure(
            contender,
            topic,
            lambda: client.ask(
                action="multipart",
                size=topic.bytes,
                part_bytes=self._bench.block_bytes,
                endpoint=endpoint,
                timeout_s=WORK_TIMEOUT_S,
            ),
            client,
            servers=servers,
        )
        if sample.error is None:
            try:
                client.ask(action="check_multipart", timeout_s=WORK_TIMEOUT_S)
            except FAILURES as error:
                sample = replace(sample, error=str(error))
        self._samples.append(sample)

    def _cold_reads(self, topic: Topic, expected: Content) -> None:
        """The objects that were published, when no bookie has the entries any more."""
        if any(s.error for s in self._samples if s.contender == "ours-release"):
            return
        bench = self._bench
        keys = self._published_keys(topic)
        self._admin("PUT", topic, "unload")  # what the broker cached while it confirmed
        self._admin("GET", topic, "internalStats")  # loading is not reading
        asks: dict[str, tuple[Child, dict[str, Any]]] = {
            "read-broker": (
                bench.client,
                {
                    "action": "consume",
                    "service_url": bench.endpoints.service_url,
                    "topic": topic.name,
                },
            ),
            "read-ours": (
                bench.local,
                {"action": "read_object", "keys": keys, "batched": self._kind.batched},
            ),
        }
        for name in sorted(asks, reverse=bool(self._round % 2)):
            agent, request = asks[name]
            answers: list[dict[str, Any]] = []

            def read(
                agent: Child = agent,
                request: dict[str, Any] = request,
                answers: list[dict[str, Any]] = answers,
            ) -> dict[str, Any]:
                answers.append(agent.ask(timeout_s=WORK_TIMEOUT_S, **request))
                return answers[0]

            sample = self._measure(name, topic, read, agent)
            self._samples.append(self._judged(sample, answers, expected))

    # ----- how it is done

    def _measure(
        self,
        contender: str,
        topic: Topic,
        act: Callable[[], dict[str, Any]],
        worker: Child | None = None,
        *,
        servers: Mapping[str, Sequence[int]] | None = None,
    ) -> Sample:
        """Run it once; a failure is a sample with an error."""
        roles = {
            **(servers or self._bench.servers),
            "worker": [] if worker is None else [worker.pid],
        }
        sample = Sample(
            contender=contender,
            kind=self._kind.name,
            round=self._round,
            bytes=topic.bytes,
            entries=topic.entries,
        )
        meter = Meter(roles, self._bench.endpoints.s3_metrics_url)
        try:
            with meter:
                answer = act()
        except FAILURES as error:
            return replace(
                sample,
                error=str(error),
                cpu_s=meter.cpu_s,
                peak_rss_mb=meter.peak_rss_mb,
            )
        return replace(
            sample,
            bytes=answer.get("bytes", topic.bytes),
            seconds=answer["seconds"],
            cpu_s=meter.cpu_s,
            peak_rss_mb=meter.peak_rss_mb,
            requests=meter.requests or 0,
        )

    def _keep(self, sample: Sample, keys: list[str], expected: Content) -> Sample:
        """Add a sample whose objects were decoded and hashed."""
        self._keys += keys
        if sample.error is None:
            try:
                answer = self._bench.local.ask(
                    action="read_object",
                    keys=keys,
                    batched=self._kind.batched,
                    timeout_s=WORK_TIMEOUT_S,
                )
                sample = self._judged(sample, [answer], expected)
            except FAILURES as error:
                sample = replace(sample, error=f"the object cannot be read: {error}")
        self._samples.append(sample)
        return sample

    def _judged(
        self, sample: Sample, answers: Sequence[Mapping[str, Any]], expected: Content
    ) -> Sample:
        if sample.error is not None:
            return sample
        found = [Content(answer["messages"], answer["sha256"]) for answer in answers]
        if found == [expected]:
            return sample
        return replace(sample, error=f"expected {expected}, found {found}")

    def _produce(self, name: str) -> Topic:
        bench = self._bench
        produce(bench.endpoints.service_url, name, self._kind, self._messages)
        tenant, namespace, local = name.split("/")
        topic = Topic(name, f"{tenant}/{namespace}/persistent/{local}", ())
        self._admin("PUT", topic, "unload")  # closes the ledger
        self._admin("GET", topic, "internalStats")  # loads the topic, which lists it as closed
        ledgers = tuple(i for i in self._read_topic(topic.ml_name) if i.entries)
        if len(ledgers) != 1:
            raise AgentError(f"{name} has {len(ledgers)} closed ledgers, expected one")
        return replace(topic, ledgers=ledgers)

    def _read_topic(self, ml_name: str) -> tuple[LedgerInfo, ...]:
        found = self._bench.stack.topics.read(ml_name)
        return () if found is None else found[0].ledgers

    def _published_keys(self, topic: Topic) -> list[str]:
        return [
            data_key(ledger.offload.uid, ledger.ledger_id)
            for ledger in self._read_topic(topic.ml_name)
            if ledger.offload is not None
        ]

    def _broker_offload(self, topic: Topic) -> dict[str, Any]:
        """Ask the broker to offload everything but its open ledger, and wait for SUCCESS."""
        open_ledger = max(i.ledger_id for i in self._read_topic(topic.ml_name))
        last = {"ledgerId": open_ledger, "entryId": 0, "partitionIndex": -1}
        deadline = time.monotonic() + WORK_TIMEOUT_S
        began = time.perf_counter()
        self._admin("PUT", topic, "offload", last)
        while (said := self._admin("GET", topic, "offload").json())["status"] == "RUNNING":
            if time.monotonic() > deadline:
                raise AgentError(f"the broker's offload takes longer than {WORK_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)
        seconds = time.perf_counter() - began
        if said["status"] != "SUCCESS":
            raise AgentError(f"the broker's offload ended with {said}")
        return {"seconds": seconds}

    def _admin(
        self, method: str, topic: Topic, action: str, body: object = None
    ) -> requests.Response:
        url = f"{self._bench.endpoints.admin_url}/admin/v2/persistent/{quote(topic.name)}"
        url = f"{url}/{action}" if action else f"{url}?force=true"
        answer = requests.request(method, url, json=body, timeout=_ADMIN_TIMEOUT_S)
        answer.raise_for_status()
        return answer

    def _clean(self, *topics: Topic) -> None:
        """Make room; what stays behind is in a directory that goes with the stack."""
        for topic in topics:
            with suppress(requests.RequestException):
                self._admin("DELETE", topic, "")
        for key in self._keys:
            for name in (key, f"{key}-index"):
                with suppress(TierkeeperError):
                    self._bench.stack.objects.delete(name)
