"""What every cell works with: servers, agents and store of one phase, and how a sample is taken.

Owns: nothing is a sample that did not give back, from the object, the messages that were sent; and
a topic that is measured has as many closed ledgers as its kind says.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import requests

from benchmarks.agents import AgentError, Child
from benchmarks.content import Content, Kind, content_of, iter_payloads, produce
from benchmarks.figures import Sample
from benchmarks.meters import Meter
from tiering_assets.ground.stack import Stack
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.devstack.endpoints import Endpoints
from tiering_assets.resources.devstack.options import MIB, StackOptions
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

NAMESPACE = "public/default"
WORK_TIMEOUT_S = 600.0
_ADMIN_TIMEOUT_S = 60.0
_POLL_S = 0.05  # each question costs the broker a millisecond or so
FAILURES = (AgentError, TierkeeperError, requests.RequestException)
Ask = Callable[[], dict[str, Any]]


def unbounded_ledgers(block_mib: int) -> StackOptions:
    """Servers whose ledgers end when their topic is unloaded, and blocks of both offloaders."""
    return StackOptions(
        block_bytes=block_mib * MIB, ledger_entries_max=50_000_000, ledger_megabytes_max=8192
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One phase. `servers` are pids by role, `counted` the requests that its store has answered.

    On a `second` store only what depends on the store is measured.
    """

    endpoints: Endpoints
    stack: Stack
    store: str
    counted: Callable[[], Counter[str]]
    servers: Mapping[str, Sequence[int]]
    local: Child
    python: Child | None  # the same as `local` with Python's loop over entries
    signing: Child | None  # the same with a key, whose releases do not read every byte again
    spark: Child | None
    client: Child
    sink: Child
    sink_port: int
    block_bytes: int
    second: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic: its closed ledgers that hold entries, and how much they hold."""

    name: str
    ml_name: str
    ledgers: tuple[LedgerInfo, ...]


class Topics:
    """Some topics of a kind with the same messages in each, and their content, one after the
    other.
    """

    def __init__(self, bench: Bench, kind: Kind, messages: int, names: Sequence[str]) -> None:
        self.kind = kind
        self._bench, self._messages = bench, messages
        self.topics = [self._made(name) for name in names]
        self.expected = content_of(self._payloads())
        self.bytes = sum(i.size or 0 for t in self.topics for i in t.ledgers)
        self.entries = sum(i.entries or 0 for t in self.topics for i in t.ledgers)

    @property
    def ml_names(self) -> list[str]:
        return [topic.ml_name for topic in self.topics]

    @property
    def ledgers(self) -> list[int]:
        return [i.ledger_id for topic in self.topics for i in topic.ledgers]

    def published_keys(self) -> list[str]:
        """The data objects that the topics name now, in the order of their ledgers."""
        return [
            data_key(ledger.offload.uid, ledger.ledger_id)
            for topic in self.topics
            for ledger in read_topic(self._bench, topic.ml_name)
            if ledger.offload is not None
        ]

    def reload(self) -> None:
        """Drop what a broker cached; the topics are loaded again when this returns."""
        for topic in self.topics:
            admin(self._bench.endpoints, "PUT", topic.name, "unload")
            admin(self._bench.endpoints, "GET", topic.name, "internalStats")

    def delete(self) -> None:
        for topic in self.topics:
            with suppress(requests.RequestException):
                admin(self._bench.endpoints, "DELETE", topic.name, "")

    def _payloads(self) -> Iterator[bytes]:
        for _ in self.topics:
            yield from iter_payloads(self.kind, self._messages)

    def _made(self, name: str) -> Topic:
        kind, bench = self.kind, self._bench
        step = self._messages // kind.ledgers
        for first in range(0, step * kind.ledgers, step):
            produce(bench.endpoints.service_url, name, kind, step, first)
            admin(bench.endpoints, "PUT", name, "unload")  # closes the ledger
        admin(
            bench.endpoints, "GET", name, "internalStats"
        )  # loads the topic, which lists it as closed
        topic = Topic(name, parse_topic_name(with_scheme(name)).managed_ledger_name, ())
        ledgers = tuple(i for i in read_topic(bench, topic.ml_name) if i.entries)
        if len(ledgers) != kind.ledgers:
            raise AgentError(f"{name} has {len(ledgers)} closed ledgers, expected {kind.ledgers}")
        return replace(topic, ledgers=ledgers)


class Measuring:
    """Takes the samples of one cell: one kind in one round."""

    def __init__(self, bench: Bench, kind: Kind, round_number: int) -> None:
        self.bench, self.kind, self.round = bench, kind, round_number
        self.samples: list[Sample] = []
        self._keys: list[str] = []

    def measure(
        self,
        contender: str,
        topics: Topics,
        act: Ask,
        worker: Child | None = None,
        *,
        servers: Mapping[str, Sequence[int]] | None = None,
    ) -> Sample:
        """Run it once; a failure is a sample with an error."""
        bench = self.bench
        roles = {**(servers or bench.servers), "worker": [] if worker is None else [worker.pid]}
        sample = Sample(
            contender=contender,
            kind=self.kind.name,
            round=self.round,
            store=bench.store,
            ledgers=len(topics.ledgers),
            bytes=topics.bytes,
            entries=topics.entries,
        )
        meter = Meter(roles, bench.counted)
        try:
            with meter:
                answer = act()
        except FAILURES as error:
            return replace(
                sample, error=str(error), cpu_s=meter.cpu_s, peak_rss_mb=meter.peak_rss_mb
            )
        return replace(
            sample,
            bytes=answer.get("bytes", topics.bytes),
            seconds=answer["seconds"],
            cpu_s=meter.cpu_s,
            peak_rss_mb=meter.peak_rss_mb,
            requests=meter.requests,
        )

    def keep(self, sample: Sample, keys: list[str], expected: Content) -> Sample:
        """Add a sample whose objects were decoded and hashed."""
        self._keys += keys
        if sample.error is None:
            try:
                answer = self.bench.local.ask(
                    action="read_object",
                    keys=keys,
                    batched=self.kind.batched,
                    timeout_s=WORK_TIMEOUT_S,
                )
                sample = judged(sample, [answer], expected)
            except FAILURES as error:
                sample = replace(sample, error=f"the object cannot be read: {error}")
        self.samples.append(sample)
        return sample

    def remove_objects(self) -> None:
        """Make room; what stays behind is in a directory that goes with the stack."""
        for key in self._keys:
            for name in (key, f"{key}-index"):
                with suppress(TierkeeperError):
                    self.bench.stack.objects.delete(name)


def judged(sample: Sample, answers: Sequence[Mapping[str, Any]], expected: Content) -> Sample:
    """The sample, or the same with an error if other messages came back than were sent."""
    if sample.error is not None:
        return sample
    found = [Content(answer["messages"], answer["sha256"]) for answer in answers]
    if found == [expected]:
        return sample
    return replace(sample, error=f"expected {expected}, found {found}")


def read_topic(bench: Bench, ml_name: str) -> tuple[LedgerInfo, ...]:
    found = bench.stack.topics.read(ml_name)
    return () if found is None else found[0].ledgers


def broker_offload(bench: Bench, topic: Topic) -> dict[str, Any]:
    """Ask the broker to offload everything but its open ledger, and wait for SUCCESS."""
    open_ledger = max(i.ledger_id for i in read_topic(bench, topic.ml_name))
    last = {"ledgerId": open_ledger, "entryId": 0, "partitionIndex": -1}
    deadline = time.monotonic() + WORK_TIMEOUT_S
    began = time.perf_counter()
    admin(bench.endpoints, "PUT", topic.name, "offload", last)
    while (said := admin(bench.endpoints, "GET", topic.name, "offload").json())[
        "status"
    ] == "RUNNING":
        if time.monotonic() > deadline:
            raise AgentError(f"the broker's offload takes longer than {WORK_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)
    seconds = time.perf_counter() - began
    if said["status"] != "SUCCESS":
        raise AgentError(f"the broker's offload ended with {said}")
    return {"seconds": seconds}


def admin(
    ends: Endpoints, method: str, topic_name: str, action: str, body: object = None
) -> requests.Response:
    url = f"{ends.admin_url}/admin/v2/persistent/{quote(topic_name)}"
    url = f"{url}/{action}" if action else f"{url}?force=true"
    answer = requests.request(method, url, json=body, timeout=_ADMIN_TIMEOUT_S)
    answer.raise_for_status()
    return answer
