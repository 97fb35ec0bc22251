"""`make tour-check`: every command that reads only, each on a cluster where no broker has anything
loaded.

Owns: what a command changed is the difference between the whole of ZooKeeper and the bucket before
and after it, less what brokers and bookies change by themselves, which one control period without
commands tells, and less what nobody but a broker that serves itself touches (BROKERS_OWN). The
commands are those that the command line itself calls reading (tests/support/reading_commands.py).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.cli_shell import Shell
from tests.support.reading_commands import reading_commands, tour_of
from tests.support.tiered_cluster import (
    TieredCluster,
    ml_names,
    post_all,
    tiered_cluster,
    wait_until,
)
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import KIB, TopicSpec, produce
from tiering_assets.stream.assign import Assigned, assign_next
from tiering_assets.stream.cut import by_hand, open_chain
from tiering_assets.stream.switch import open_stream

SCHEMA = "tierkeeper/read-only/1"
OUTPUT = Path("build/read-only.json")
IDLE = 50
CONTROL_S = 75.0  # brokers report their load, and compute stats, once a minute
ALLOWED = (0, 1, 14)
# Never a topic's, and changed by brokers and bookies at moments of their own.
BROKERS_OWN = tuple(
    map(
        re.compile,
        (
            r"/loadbalance(/.*)?",  # load reports
            r"/counters(/.*)?",  # of producer names
            r"/ledgers/(idgen|underreplication)(/.*)?",
            r"/namespace",  # ZooKeeper drops empty containers by itself
            r"/namespace/[^/]+(/[^/]+)?",
        ),
    )
)


@dataclass(frozen=True, slots=True)
class State:
    """Every node of ZooKeeper by (version, last transaction), every object and unfinished
    upload.
    """

    nodes: Mapping[str, tuple[int, int]]
    objects: frozenset[tuple[Any, ...]]
    uploads: frozenset[str]

    def difference(self, other: State) -> set[str]:
        """Paths, keys and upload ids that one of both has alone, or otherwise."""
        nodes = {path for path, _seen in self.nodes.items() ^ other.nodes.items()}
        objects = {f"object {key}" for key, *_facts in self.objects ^ other.objects}
        return nodes | objects | {f"upload {one}" for one in self.uploads ^ other.uploads}


@dataclass(slots=True)
class Report:
    """What changed in the control period, and by each command."""

    control: list[str] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)

    @property
    def changes(self) -> dict[str, list[str]]:
        return {" ".join(one["words"]): one["changed"] for one in self.commands if one["changed"]}

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "schema": SCHEMA,
            "control": self.control,
            "brokers_own": [rule.pattern for rule in BROKERS_OWN],
            "commands": self.commands,
            "changes": self.changes,
        }
        path.write_text(json.dumps(document, indent=1, default=str) + "\n")


def check_tour(cluster: TieredCluster, shell: Shell, home: Path) -> Report:
    """Run them all on a cluster of which every topic was just unloaded. `home` is an empty
    DAGSTER_HOME.
    """
    namespace = f"public/idle-{uuid4().hex[:6]}"
    found = _prepare(cluster, namespace)
    cluster.restart_broker()  # nobody owns a bundle any more, of other namespaces either
    wait_until(lambda: cluster.steps.broker.list_brokers(), "the broker is back")
    zookeeper = KazooClient(cluster.endpoints.zookeeper)
    zookeeper.start()
    try:
        report = _of_each(tour_of(found), shell, home, partial(_state, cluster, zookeeper))
    finally:
        zookeeper.stop()
        zookeeper.close()
    report.commands.append(
        {"words": ["(topics loaded)"], "exit": 0, "changed": sorted(_loaded(cluster, namespace))}
    )
    return report


def _of_each(
    tour: Iterable[Sequence[str]], shell: Shell, home: Path, state: Callable[[], State]
) -> Report:
    report = Report()
    before = _settled(state)
    time.sleep(CONTROL_S)
    after = state()
    report.control = sorted(_not_own(before.difference(after)))
    for words in tour:
        before = after
        began = time.monotonic()
        done = shell(*words, code=range(100), DAGSTER_HOME=str(home))
        took = time.monotonic() - began
        after = state()
        changed = _not_own(before.difference(after)) - {*report.control}
        report.commands.append(
            {
                "words": [*words],
                "exit": done.returncode,
                "seconds": round(took, 1),
                "changed": sorted(changed),
                "said": done.stdout[:500] if done.returncode not in ALLOWED else "",
                "error": done.stderr[-500:] if done.returncode not in ALLOWED else "",
            }
        )
    return report


def _prepare(cluster: TieredCluster, namespace: str) -> dict[str, str]:
    """Idle topics, one of them with a published, a released and a sealed ledger. What commands
    name.
    """
    cluster.make_namespace(namespace)
    spec = TopicSpec(topic=f"{namespace}/t-000", messages=10, payload_bytes=KIB)
    for seed in range(3):
        cluster.fill(TopicSpec(topic=spec.topic, messages=10, payload_bytes=KIB, seed=seed))
    first, second, third = cluster.ledger_ids(spec)
    copied = cluster.offload([first, second])
    cluster.release(spec, [first])
    streamed = _streamed(cluster, f"{namespace}/streamed")
    post_all(cluster.steps)
    names = [f"/persistent/{namespace}/t-{number:03d}" for number in range(1, IDLE)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: cluster.admin("PUT", name), names))
    certificate = copied[1].certificate
    assert certificate is not None
    return {
        "topic": spec.topic,
        "ledger": str(third),
        "published": str(second),
        "streamed": streamed,
        "key": certificate.record.data.key,
        "bucket": cluster.endpoints.s3_bucket,
        "stack": str(cluster.running.directory),
    }


def _streamed(cluster: TieredCluster, topic: str) -> str:
    """A topic with a segment that is assigned and not there yet."""
    spec = TopicSpec(topic=topic, messages=10, payload_bytes=KIB)
    for seed in range(3):  # each entry confirms the one before it
        produce(cluster.endpoints, replace(spec, seed=seed))
    [ml_name] = ml_names(spec)
    open_stream(cluster.steps, ml_name, author="tour")
    found = assign_next(cluster.steps, open_chain(cluster.steps, ml_name), by_hand(cluster.steps))
    assert isinstance(found, Assigned), found
    return topic


def _settled(state: Callable[[], State]) -> State:
    """Once the broker that has just started leaves things alone by itself."""
    before = state()
    for _ in range(20):
        time.sleep(5)
        now = state()
        if not _not_own(before.difference(now)):
            break
        before = now
    return before


def _state(cluster: TieredCluster, zookeeper: KazooClient) -> State:
    objects = cluster.steps.objects
    return State(
        dict(_nodes(zookeeper)),
        frozenset((one.key, one.etag, one.last_modified) for one in objects.list_objects()),
        frozenset(one.upload_id for one in objects.list_uploads()),
    )


def _nodes(zookeeper: KazooClient) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each node by a request that tells its children, too; those of a level are sent at once."""
    level = [""]
    while level:
        asked = [
            (path, zookeeper.get_children_async(path or "/", include_data=True)) for path in level
        ]
        level = []
        for path, answer in asked:
            try:
                names, stat = answer.get()
            except NoNodeError:
                continue
            if path:
                yield path, (stat.version, stat.mzxid)
            level += [f"{path}/{name}" for name in names]


def _not_own(paths: set[str]) -> set[str]:
    return {path for path in paths if not any(rule.fullmatch(path) for rule in BROKERS_OWN)}


def _loaded(cluster: TieredCluster, namespace: str) -> set[str]:
    stats = cluster.admin("GET", "/broker-stats/topics")
    listed = {t for ns in stats.values() for b in ns.values() for k in b.values() for t in k}
    return {topic for topic in listed if f"//{namespace}/" in topic}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        DevStack.start(Path(folder), StackOptions(short_lived=True)) as stack,
        tiered_cluster(stack) as cluster,
    ):
        home = Path(folder) / "dagster_home"
        home.mkdir()
        report = check_tour(cluster, Shell(stack, Path(folder)), home)
    report.write(asked.output)
    wrong = [one for one in report.commands if one["exit"] not in ALLOWED]
    for words, changed in report.changes.items():
        sys.stdout.write(f"{words}: changed {', '.join(changed[:9])}\n")
    for one in wrong:
        sys.stdout.write(f"{' '.join(one['words'])}: exit {one['exit']}: {one['error']}\n")
    sys.stdout.write(
        f"{len(report.commands) - 1} commands of {len(reading_commands())} kinds, "
        f"{len(report.changes)} changed something, {len(wrong)} failed; see {asked.output}\n"
    )
    return 1 if report.changes or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
