"""Real servers with what makes each alert rule true, and what makes it false again.

Owns: the turns in which every rule fires and is quiet again. Ledgers wait, differ from a replica,
lose their node; the store and `metrics serve` are stopped. The first lag has only become older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.support.metrics_server import MetricsServer, serving
from tests.support.tiered_cluster import TieredCluster, tiered_cluster
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec
from tiering_assets.resources.metastore.ledger_paths import ledger_path
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.tasks.runner import LocalRunner

NAMESPACE: Final = "public/watched"
_NEAR: Final = 0.9  # of the objective, by the first ledger


def spec_of(name: str, messages: int = 400) -> TopicSpec:
    return TopicSpec(topic=f"{NAMESPACE}/{name}", messages=messages, payload_bytes=1000)


class _Differs:
    """A runner for which a second replica has other entries than the first."""

    def __init__(self, runner: LocalRunner) -> None:
        self._runner = runner

    def begin(self) -> None:
        self._runner.begin()

    def start(self) -> None:
        self._runner.start()

    def interrupt(self, run_id: str, attempts: Sequence[str]) -> None:
        self._runner.interrupt(run_id, attempts)

    def run(self, tasks: Any, *, progress: Any = None) -> Any:
        return [
            replace(row, entries_sha256="0" * 64) if row.kind is TaskKind.READ_SOURCE else row
            for row in self._runner.run(tasks, progress=progress)
        ]


@dataclass
class Scene:
    """`server` is the running `metrics serve`, always on one port."""

    running: DevStack
    cluster: TieredCluster
    folder: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)
    _server: ExitStack = field(default_factory=ExitStack)

    @property
    def steps(self) -> Stack:
        return self.cluster.steps

    def serve(self) -> MetricsServer:
        """Start it, and wait for a good survey."""
        server = self._server.enter_context(
            serving(self.running, self.folder, self.settings, port=self.port)
        )
        server.survey()
        return server

    def end_server(self) -> None:
        self._server.close()

    def closed(self, name: str) -> int:
        """The ledger of a new topic, closed and not copied."""
        spec = spec_of(name)
        self.cluster.fill(spec)
        [ledger_id] = self.cluster.ledger_ids(spec)
        return ledger_id

    def offload_all(self) -> None:
        """Until no closed ledger is without a copy: a reload closes the one that was open."""
        while waiting := self._waiting():
            self.cluster.offload(waiting)

    def _waiting(self) -> list[int]:
        return sorted(
            one.ledger_id
            for one in survey(self.steps, None)
            if one.state.value in ("sealed", "quarantined", "verified", "copied")
        )

    def quarantine(self, name: str) -> int:
        """A ledger whose copy failed its check: a second replica differs."""
        ledger_id = self.closed(name)
        settings = self.steps.settings
        settings = replace(settings, verify=replace(settings.verify, second_replica="all"))
        runner = _Differs(LocalRunner(settings))
        differing = replace(self.steps, settings=settings, runner=runner)
        [outcome] = offload_batch(differing, [ledger_id], publish=False)
        assert "replicas differ" in str(outcome.error), outcome
        return ledger_id

    # ----- what makes the rules true, by turns

    def first_lag(self) -> None:
        """A ledger waits, near the objective, before anybody looks."""
        ledger_id = self.closed("orders")
        size = self.cluster.ledger(ledger_id).length
        self.settings["TIERKEEPER_OBJECTIVES_COPY_LAG_BYTES_MAX"] = str(int(size / _NEAR))

    def second_lag(self) -> None:
        self.closed("payments")

    def forget_reloads(self) -> None:
        """As if the hour was over: an hour is longer than a check may wait."""
        for key in [*self.steps.book.keys(keys.DISTURBANCES)]:
            self.steps.objects.delete(self.steps.book.prefix + key)

    def damage(self) -> None:
        self.quarantine("damaged")

    def lose_node(self) -> None:
        """BookKeeper's metadata no longer know a ledger that was not copied."""
        self.lost = self.closed("lost")
        path = self._path(self.lost)
        node = self.steps.metadata.get(path)
        assert node is not None
        self.node = node.data
        self.steps.metadata.delete(path, expected_version=node.stat.version)

    def find_node(self) -> None:
        self.steps.metadata.create(self._path(self.lost), self.node)

    def _path(self, ledger_id: int) -> str:
        directory = self.steps.ledgers
        return ledger_path(self.steps.settings.metadata.ledgers_root, ledger_id, directory.layout)

    def stop_store(self) -> None:
        self.running.stop_server("s3")

    def start_store(self) -> None:
        self.running.start_server("s3")

    def wait(self) -> None:
        """What is so already is enough."""


Act = Callable[[Scene], object]


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens, which rules fire by it, and which are quiet again."""

    act: Act
    fires: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()


TURNS: Final = (
    Turn(Scene.wait, fires=("TierkeeperObjectiveNear", "TierkeeperCopyLagGrows")),
    Turn(
        Scene.second_lag,
        fires=("TierkeeperObjectiveMissed",),
        clears=("TierkeeperObjectiveNear",),
    ),
    Turn(
        Scene.offload_all,
        fires=("TierkeeperDisturbsMuch",),
        clears=("TierkeeperObjectiveMissed", "TierkeeperCopyLagGrows"),
    ),
    Turn(Scene.forget_reloads, clears=("TierkeeperDisturbsMuch",)),
    Turn(Scene.damage, fires=("TierkeeperQuarantined",)),
    Turn(Scene.offload_all, clears=("TierkeeperQuarantined",)),
    Turn(Scene.lose_node, fires=("TierkeeperDataUnsafe",)),
    Turn(Scene.find_node, clears=("TierkeeperDataUnsafe",)),
    Turn(Scene.stop_store, fires=("TierkeeperSurveyFailing", "TierkeeperFiguresOld")),
    Turn(Scene.start_store, clears=("TierkeeperSurveyFailing", "TierkeeperFiguresOld")),
    Turn(Scene.end_server, fires=("TierkeeperDown",)),
    Turn(Scene.serve, clears=("TierkeeperDown",)),
)


@contextmanager
def metrics_scene(folder: Path, port: int) -> Iterator[Scene]:
    """New servers; whatever is closed is wanted in the bucket. `metrics serve` is not started."""
    (folder / "tiering.toml").write_text("[default]\noffloadSizeInMB = 0\n", encoding="utf-8")
    settings = {
        "TIERKEEPER_RELEASE_DELETION_LAG_S": "86400",
        "TIERKEEPER_STORE_ATTEMPTS_MAX": "3",
    }
    options = StackOptions(short_lived=True)
    with DevStack.start(folder / "stack", options) as running, tiered_cluster(running) as cluster:
        cluster.make_namespace(NAMESPACE)
        scene = Scene(running, cluster, folder, port, settings)
        try:
            yield scene
        finally:
            scene.end_server()
