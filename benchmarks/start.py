"""What it costs to start each kind of process: CPU seconds, wall seconds, modules; before and
after.

    .venv/bin/python -m benchmarks.start --base COMMIT [--starts 5] [--stack build/stack]

The code of COMMIT is unpacked, compiled and run with the same libraries and servers. Starts of both
take turns, so that other work on the machine meets both; medians are written to
benchmarks/results/start.json. Commands, runs and ticks do their work on real, empty servers, which
are started unless --stack names some that run. CPU counts the process and what it waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

import tiering_assets.cli.main as cli
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "start.json"
NEEDS_OF_BEFORE = ("crc32c>=2.7,<3",)  # what earlier commits import and this tree does not
MODULES = "import sys; open({told!r}, 'w').write(str(len(sys.modules)))"
COMMAND = """
import sys
sys.argv = ["tierkeeper", *{words!r}]
from tiering_assets.cli.main import main
try:
    main()
except SystemExit as done:
    if done.code:
        raise
"""
VERBS = (
    "config show",
    "ledger list",
    "topic list",
    "topic backlog",
    "scrub status",
)
DEFINITIONS = "import tiering_assets.definitions\n"
TICK = """
import dagster as dg
from tiering_assets.definitions import defs
from tiering_assets.defs.shared.resources import TieringStack
[sensor] = [s for s in defs.get_repository_def().sensor_defs if s.name == "offload_threshold"]
with dg.DagsterInstance.local_temp({home!r}) as instance:
    sensor.evaluate_tick(dg.build_sensor_context(
        instance=instance, definitions=defs, resources={{"tiering_stack": TieringStack()}}))
"""
RUN = """
import dagster as dg
from tiering_assets.definitions import defs
with dg.DagsterInstance.local_temp({home!r}) as instance:
    if not defs.resolve_job_def("discover").execute_in_process(instance=instance).success:
        raise SystemExit("the run failed")
"""
JUDGING_RUN = """
import tiering_assets.definitions
import tiering_assets.batch.pipeline, tiering_assets.verify.verify, tiering_assets.batch.release_batch
from tiering_assets.quality.expectations_run import _batch_definition
_batch_definition()
"""
WORKER = """
import pyarrow, pyspark.worker
import tiering_assets.spark.bootstrap
from tiering_assets.resources.settings_of_workers import plain_settings, worker_settings
from tiering_assets.resources.settings import Settings
worker_settings(plain_settings(Settings()))
import tiering_assets.tasks.copy, tiering_assets.tasks.read_back
"""


def programs(home: str) -> dict[str, str]:
    """The program of each kind of process."""
    root: Any = typer.main.get_command(cli.app)
    nouns = [name for name, found in root.commands.items() if hasattr(found, "commands")]
    helps = [["--help"], *([noun, "--help"] for noun in nouns)]
    told = {" ".join(["tierkeeper", *words]): COMMAND.format(words=words) for words in helps}
    told |= {f"tierkeeper {verb}": COMMAND.format(words=verb.split()) for verb in VERBS}
    return told | {
        "definitions loaded (code server)": DEFINITIONS,
        "sensor tick, the first": TICK.format(home=home),
        "run of discover": RUN.format(home=home),
        "imports of a run that judges": JUDGING_RUN,
        "imports of a Spark worker": WORKER,
    }


def start(
    program: str, code: Path, environment: dict[str, str], told: Path
) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and modules of one process."""
    program = f"{program}\n{MODULES.format(told=str(told))}"
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment | {"PYTHONPATH": str(code)},
        cwd=code,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    said = child.stderr.read()
    _pid, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    if child.returncode != 0:
        raise SystemExit(f"{program}\nended with {child.returncode}:\n{said}")
    return usage.ru_utime + usage.ru_stime, wall, int(told.read_text())


def median_of(starts: list[tuple[float, float, int]]) -> dict[str, Any]:
    cpu, wall, modules = (statistics.median(column) for column in zip(*starts, strict=True))
    return {"cpu_s": round(cpu, 3), "wall_s": round(wall, 3), "modules": int(modules)}


def unpack(commit: str, into: Path) -> None:
    """The tree of a commit, compiled as an installation is, with what it alone imports."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    into.mkdir()
    subprocess.run(["tar", "-x"], input=archive.stdout, cwd=into, check=True)
    installer = str(Path(sys.executable).with_name("uv"))
    installing = [installer, "pip", "install", "--quiet", "--target", str(into), *NEEDS_OF_BEFORE]
    subprocess.run(installing, check=True)
    compile_ = [sys.executable, "-m", "compileall", "-qq", "resources", "tiering_assets"]
    subprocess.run(compile_, cwd=into, check=True)


@contextmanager
def servers(directory: Path | None, scratch: Path) -> Iterator[dict[str, str]]:
    """The environment of running servers."""
    if directory is not None:
        yield DevStack.open(directory).environment()
        return
    with DevStack.start(scratch / "stack", StackOptions()) as stack:
        yield stack.environment()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--base", required=True, help="commit to compare with")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--only", default="", help="kinds whose name contains this; writes nothing")
    parser.add_argument("--stack", type=Path, help="directory of running servers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        (scratch / "home").mkdir()
        code = {"before": scratch / "base", "after": ROOT}
        unpack(asked.base, code["before"])
        with servers(asked.stack, scratch) as own:
            environment = {"PATH": os.environ["PATH"], "HOME": directory} | own
            kinds = {}
            for kind, program in programs(str(scratch / "home")).items():
                if asked.only not in kind:
                    continue
                found: dict[str, list[tuple[float, float, int]]] = {"before": [], "after": []}
                for number in range(asked.starts + 1):  # the first of each warms the page cache
                    for side, starts in found.items():
                        one = start(program, code[side], environment, scratch / "told")
                        starts[:] = [*starts, one] if number else []
                kinds[kind] = {side: median_of(starts) for side, starts in found.items()}
                print(kind, json.dumps(kinds[kind]), flush=True)
    if not asked.only:
        results = {
            "schema": 1,
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "base": asked.base,
            "starts": asked.starts,
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "load_after": [round(load, 2) for load in os.getloadavg()],
            "kinds": kinds,
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
