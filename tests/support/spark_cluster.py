"""A standalone Spark master with two workers and a Connect server, as strangers to the project.

All of them start in a directory of their own with a bare environment: PATH, JAVA_HOME, and what a
worker is meant to have (a file with the key pair). Their Pythons are virtual environments that have
the packages of this one, and our code only where a test puts it. The two workers have different
names for this machine, because Spark runs a speculative copy of a task on another host only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from tests.support.spark_archive import link_packages
from tiering_assets.resources.devstack.options import SHORT_LIVED
from tiering_assets.resources.devstack.prerequisites import require_java

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
WORKER_HOSTS = ("localhost", HOST)
CORES = 2  # what each application takes, one of each worker
_START_S = 180.0
_QUIET = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
logger.connect.name = org.apache.spark.sql.connect
logger.connect.level = debug
"""


@dataclass(frozen=True, kw_only=True)
class SparkCluster:
    """Where the servers listen, and the Pythons that their workers may run."""

    home: Path
    master: str
    connect: str
    bare_python: str
    installed_python: str
    stale_python: str
    older_python: str
    lean_python: str

    def executors(self, *, since: float = 0.0) -> list[psutil.Process]:
        """The JVMs of executors that were started after this second of the clock."""
        found = []
        for process in psutil.process_iter(["cmdline", "create_time"]):
            line = process.info["cmdline"] or []
            if (
                "org.apache.spark.executor.CoarseGrainedExecutorBackend" in line
                and any(str(self.home) in word for word in line)
                and process.info["create_time"] > since
            ):
                found.append(process)
        return found

    def logs(self) -> str:
        """Everything that servers and executors wrote."""
        files = [*self.home.glob("*.log"), *self.home.glob("work-*/*/*/std*")]
        return "\n".join(path.read_text(errors="replace") for path in files)


_FIELDS = "major minor micro releaselevel serial"  # libraries ask by name, too
_OLDER = f"collections.namedtuple('version_info', '{_FIELDS}')(3, 10, 99, 'final', 0)"


@contextmanager
def spark_cluster(home: Path, *, worker_environment: dict[str, str]) -> Iterator[SparkCluster]:
    """Start the four servers below `home`; end them, and what they started, at the end."""
    pythons = home / "python"
    bare = make_python(pythons / "bare")
    code = home / "code"
    copy_code(code)
    stale = home / "stale"
    copy_code(stale)
    with (stale / "tiering_assets" / "tasks" / "copy.py").open("a") as changed:
        changed.write("\n# as it was a release ago\n")
    conf = home / "conf"
    conf.mkdir()
    (conf / "log4j2.properties").write_text(_QUIET)
    events = home / "events"
    events.mkdir()
    rpc, connect_port = free_port(), free_port()
    cluster = SparkCluster(
        home=home,
        master=f"spark://{HOST}:{rpc}",
        connect=f"sc://{HOST}:{connect_port}",
        bare_python=bare,
        installed_python=make_python(pythons / "installed", code),
        stale_python=make_python(pythons / "stale", stale),
        older_python=make_python(
            pythons / "older", line=f"import sys, collections; sys.version_info = {_OLDER}"
        ),
        lean_python=make_python(
            pythons / "lean", packages=link_packages(pythons / "lean-packages")
        ),
    )
    environment = {
        "PATH": f"{Path(bare).parent}:/usr/local/bin:/usr/bin:/bin",
        "JAVA_HOME": str(require_java().parents[1]),
        "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(home / "scratch"),
        **worker_environment,
    }
    with ExitStack() as exits:
        master = [
            *("org.apache.spark.deploy.master.Master", "--host", HOST),
            *("--port", str(rpc), "--webui-port", str(web := free_port())),
        ]
        exits.enter_context(_server(home, "master", "spark-class", master, environment))
        _wait_for_port(rpc)
        for number, host in enumerate(WORKER_HOSTS):
            worker = [
                *("org.apache.spark.deploy.worker.Worker", "--host", host),
                *("--port", str(free_port()), "--webui-port", str(free_port())),
                *("--cores", "8", "--memory", "6g", "--work-dir", str(home / f"work-{number}")),
                cluster.master,
            ]
            exits.enter_context(
                _server(home, f"worker-{number}", "spark-class", worker, environment)
            )
        # A Connect server that starts before both are known takes all its cores from one of them.
        _wait_for_workers(web, len(WORKER_HOSTS))
        settings = {
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.cores.max": str(CORES),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
            "spark.speculation": "true",
            "spark.speculation.interval": "200ms",
            "spark.speculation.multiplier": "1.5",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "2s",
            # Jobs are small (docs/decisions/0023): one task has no others to be slower than.
            "spark.speculation.task.duration.threshold": "6s",
        }
        submit = _connect_words(cluster.master, "connect", connect_port, settings)
        exits.enter_context(_server(home, "connect", "spark-submit", submit, environment))
        _wait_for_port(connect_port)
        yield cluster


@contextmanager
def connect_server(
    home: Path, environment: dict[str, str], *, python: str = sys.executable
) -> Iterator[str]:
    """A Connect server that runs all of it in its own machine; its address.

    As this Python it has the code of this checkout, as another one what that has.
    """
    port = free_port()
    submit = _connect_words("local[2,2]", "connect-alone", port, {})
    known = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(require_java().parents[1]),
        "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": python,
        **({"PYTHONPATH": str(ROOT)} if python == sys.executable else {}),
        **environment,
    }
    with _server(home, "connect-alone", "spark-submit", submit, known):
        _wait_for_port(port)
        yield f"sc://{HOST}:{port}"


def _connect_words(master: str, name: str, port: int, settings: Mapping[str, str]) -> list[str]:
    """What spark-submit is told to start a Connect server there."""
    every = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        **settings,
    }
    return [
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", master, "--name", name),
        *(word for item in every.items() for word in ("--conf", "=".join(item))),
        "spark-internal",
    ]


def copy_code(folder: Path) -> None:
    """Put our package there, as an installation has it: without a link."""
    name, bytecode = "tiering_assets", shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / name, folder / name, ignore=bytecode)


def make_python(folder: Path, *paths: Path, packages: Path | None = None, line: str = "") -> str:
    """A virtual environment with `packages`, this one's if None, and `paths`; its interpreter.

    An editable installation is named by a .pth file, and those of a folder that is itself named by
    one are not followed: our code is not there unless `paths` have it.
    """
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    lines = [str(packages or sysconfig.get_path("purelib")), *(str(path) for path in paths), line]
    (site / "packages.pth").write_text("\n".join(lines) + "\n")
    return str(folder / "bin" / "python3")


def free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@contextmanager
def _server(
    home: Path, name: str, program: str, arguments: list[str], environment: dict[str, str]
) -> Iterator[None]:
    command = [str(Path(pyspark.__file__).parent / "bin" / program), *arguments]
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        started = psutil.Process(process.pid).children(recursive=True)
        for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
            if process.poll() is None:
                os.killpg(process.pid, number)
                try:
                    process.wait(patience)
                except subprocess.TimeoutExpired:
                    continue
        for left in started:
            try:
                left.kill()
            except psutil.NoSuchProcess:
                continue


def _wait_for_workers(web: int, count: int) -> None:
    """Wait until the master's page counts them."""
    deadline, alive = time.monotonic() + _START_S, 0
    while time.monotonic() < deadline:
        url = f"http://{HOST}:{web}/json/"
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=5) as page:
            alive = json.load(page).get("aliveworkers", 0)
            if alive >= count:
                return
        time.sleep(0.2)
    raise TimeoutError(f"{alive} of {count} workers are at the master after {_START_S:g} s")


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":  # to try things by hand: folder, then wait for Ctrl-C
    with spark_cluster(Path(sys.argv[1]), worker_environment={}) as running:
        sys.stdout.write(f"{running}\n")
        sys.stdout.flush()
        signal.pause()
