"""One kind of ledgers in one round: every contender on the same content, one after the other.

Owns: who goes first alternates by round. Of a kind with one ledger two topics are made: the broker
offloads one, tierkeeper the other; Spark and Python's loop copy the broker's topic before it does,
in the first round alone. Of many ledgers tierkeeper alone has a topic, or many, and a key to sign
with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.agents import Child
from benchmarks.bench import (
    FAILURES,
    NAMESPACE,
    WORK_TIMEOUT_S,
    Bench,
    Measuring,
    Topics,
    broker_offload,
    judged,
)
from benchmarks.content import Kind
from benchmarks.figures import Sample, joined

ONLY_ROUND = 1  # of what no goal is about: Spark and Python's loop
SIGNED = "ours-release (signed)"


class Cell(Measuring):
    """Measures one kind in one round; `run` returns its samples.

    With `keep` the released topics stay, for reads from farther away: `kept`.
    """

    def __init__(
        self, bench: Bench, kind: Kind, round_number: int, messages: int, *, keep: bool = False
    ) -> None:
        super().__init__(bench, kind, round_number)
        self._messages, self._keep_ours = messages, keep
        self.kept: Topics | None = None

    def run(self) -> list[Sample]:
        """Everything on new topics, which are deleted in the end."""
        single = self.kind.topics == self.kind.ledgers == 1
        made = self._one_ledger() if single else self._many_ledgers()
        for topics in made:
            if topics is not self.kept:
                topics.delete()
        if self.kept is None:
            self.remove_objects()
        return self.samples

    def _one_ledger(self) -> list[Topics]:
        theirs, ours = self._produce("broker"), self._produce("ours")
        turns: list[Callable[[], None]] = [
            lambda: self._theirs(theirs),
            lambda: self._ours(ours, self.bench.local, "ours-release"),
            lambda: self._ceilings(ours),
        ]
        turns = turns if self.round % 2 else [turns[1], turns[2], turns[0]]
        for turn in turns:
            turn()
        released = not any(s.error for s in self.samples if s.contender == "ours-release")
        if released and not self.bench.second:
            cold_reads(self, ours)
            if self._keep_ours:
                self.kept = ours
        return [theirs, ours]

    def _many_ledgers(self) -> list[Topics]:
        signing = self.bench.signing
        if signing is None:
            return []
        ours = self._produce("ours")
        self._ours(ours, signing, SIGNED)
        return [ours]

    # ----- contenders

    def _theirs(self, topics: Topics) -> None:
        bench = self.bench
        if bench.spark is not None and self.round <= ONLY_ROUND:
            self._staged(bench.spark, "spark", topics)
        if bench.python is not None and self.round == ONLY_ROUND:
            self._by_python(bench.python, topics)
        (ledger_id,) = topics.ledgers
        bench.local.ask(action="open_ledger", ledger_id=ledger_id, timeout_s=WORK_TIMEOUT_S)
        self._least_work(topics)
        if not bench.second:
            self._bookies(topics)
        (topic,) = topics.topics
        sample = self.measure("broker", topics, lambda: broker_offload(bench, topic))
        keys = topics.published_keys()
        if sample.error is None and len(keys) != len(topics.ledgers):
            sample = replace(sample, error=f"{len(keys)} of {len(topics.ledgers)} were offloaded")
        self.keep(sample, keys, topics.expected)

    def _ours(self, topics: Topics, local: Child, release: str) -> None:
        stages, keys = self._staged(local, "ours", topics)
        if any(stage.error is not None for stage in stages):
            self.samples.append(replace(stages[-1], contender=release))
            return
        last = self.measure(
            release,
            topics,
            lambda: local.ask(action="publish_and_release", timeout_s=WORK_TIMEOUT_S),
            local,
        )
        left = [ledger for ledger in topics.ledgers if self.bench.stack.ledgers.read(ledger)]
        if last.error is None and left:
            last = replace(last, error=f"bookies still have {left}")
        self.keep(joined(release, [*stages, last]), keys, topics.expected)

    def _by_python(self, agent: Child, topics: Topics) -> None:
        before = len(self.samples)
        stages, _keys = self._staged(agent, "ours", topics)
        del self.samples[before:]
        self.samples.append(joined("ours-verify (python)", stages))

    def _staged(self, agent: Child, name: str, topics: Topics) -> tuple[list[Sample], list[str]]:
        """Copy, then copy and read-back together."""
        keys: list[str] = []

        def copy() -> dict[str, Any]:
            answer = agent.ask(action="copy", ml_names=topics.ml_names, timeout_s=WORK_TIMEOUT_S)
            keys.extend(answer["keys"])
            return answer

        copied = self.measure(f"{name}-copy", topics, copy, agent)
        stages = [copied]
        if copied.error is None:
            stages.append(
                self.measure(
                    f"{name}-verify",
                    topics,
                    lambda: agent.ask(action="verify", timeout_s=WORK_TIMEOUT_S),
                    agent,
                )
            )
        copied = self.keep(copied, keys, topics.expected)
        stages = [copied, *stages[1:]]
        self.samples.append(joined(f"{name}-verify", stages))
        return stages, keys

    def _least_work(self, topics: Topics) -> None:
        local = self.bench.local
        sample = self.measure(
            "ceiling-least-work",
            topics,
            lambda: local.ask(
                action="least_work",
                part_bytes=self.bench.block_bytes,
                timeout_s=WORK_TIMEOUT_S,
            ),
            local,
        )
        self.samples.append(sample)

    def _bookies(self, topics: Topics) -> None:
        local = self.bench.local
        sample = self.measure(
            "ceiling-bookies",
            topics,
            lambda: local.ask(action="read_bookies", timeout_s=WORK_TIMEOUT_S),
            local,
        )
        answer = local.ask(
            action="hash_bookies", batched=self.kind.batched, timeout_s=WORK_TIMEOUT_S
        )
        self.samples.append(judged(sample, [answer], topics.expected))

    def _ceilings(self, topics: Topics) -> None:
        bench = self.bench
        sink = {**bench.servers, "store": [bench.sink.pid]}
        sink_url = f"http://127.0.0.1:{bench.sink_port}"
        keys = topics.published_keys()
        if not keys:
            return
        bench.client.ask(action="load", key=keys[0], timeout_s=WORK_TIMEOUT_S)
        self._bare("ceiling-store", "multipart", topics, None, bench.servers)
        if not bench.second:
            self._bare("ceiling-sink", "multipart", topics, sink_url, sink)
        self._bare("ceiling-put-get", "put_get", topics, None, bench.servers)

    def _bare(
        self,
        contender: str,
        action: str,
        topics: Topics,
        endpoint: str | None,
        servers: Mapping[str, Sequence[int]],
    ) -> None:
        client = self.bench.client
        sample = self.measure(
            contender,
            topics,
            lambda: client.ask(action=action, endpoint=endpoint, timeout_s=WORK_TIMEOUT_S),
            client,
            servers=servers,
        )
        if sample.error is None:
            try:
                client.ask(action="check_sent", timeout_s=WORK_TIMEOUT_S)
            except FAILURES as error:
                sample = replace(sample, error=str(error))
        self.samples.append(sample)

    def _produce(self, who: str) -> Topics:
        label = self.kind.name.replace(" ", "").replace(",", "-")
        unique = f"{NAMESPACE}/{label}-{self.round}-{time.time_ns():x}-{who}"
        names = [f"{unique}-{number}" for number in range(self.kind.topics)]
        return Topics(self.bench, self.kind, self._messages, names)


def cold_reads(cell: Measuring, topics: Topics, suffix: str = "") -> None:
    """Read the objects that were published, when no bookie has the entries any more."""
    bench = cell.bench
    topics.reload()  # what the broker cached while it confirmed
    (topic,) = topics.topics
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
            {
                "action": "read_object",
                "keys": topics.published_keys(),
                "batched": topics.kind.batched,
            },
        ),
    }
    for name in sorted(asks, reverse=bool(cell.round % 2)):
        agent, request = asks[name]
        answers: list[dict[str, Any]] = []

        def read(
            agent: Child = agent,
            request: dict[str, Any] = request,
            answers: list[dict[str, Any]] = answers,
        ) -> dict[str, Any]:
            answers.append(agent.ask(timeout_s=WORK_TIMEOUT_S, **request))
            return answers[0]

        sample = cell.measure(f"{name}{suffix}", topics, read, agent)
        cell.samples.append(judged(sample, answers, topics.expected))


class FarReads(Measuring):
    """Reads topics that a cell has kept again, from a store that is farther away."""

    def run(self, topics: Topics) -> list[Sample]:
        cold_reads(self, topics, "-100ms")
        return self.samples
