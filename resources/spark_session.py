"""One classic local Spark session: a JVM on loopback that places tasks and carries small rows.

Owns: the session, its JVM and what they inherit. Python workers are this interpreter (in a virtual
environment that is not activated they would otherwise be another python3), and they inherit the
environment the JVM was started with; that is how credentials reach them, never by Spark's
configuration, which is on the JVM's command line for everybody to read.
Refuses remote masters by name: with `sc://` the client's environment, code and task retries do not
reach the workers, which needs a deployment of its own. pyspark is imported here and in
tiering_assets/spark only, inside functions, because importing it costs a second.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resources.devstack.prerequisites import require_java
from resources.errors import PrerequisiteError, SettingsError
from resources.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local\[(\d+|\*)(?:,(\d+))?\]")
_LOG4J = Path(__file__).with_name("spark_log4j2.properties")
_JVM_STOP_S = 20.0
_LOOPBACK = "127.0.0.1"


def local_cores(master: str) -> int:
    """Return the number of tasks that run at once under a local master.

    Raises:
        SettingsError: the master is remote, or no master that survives a lost worker.
    """
    if master.startswith(("sc://", "spark://")):
        raise SettingsError(
            f"spark.master is {master!r}: remote masters are not supported yet; use local[2,4]"
        )
    match = _LOCAL.fullmatch(master)
    if match is None:
        raise SettingsError(
            f"spark.master is {master!r}, expected local[cores,failures] such as local[2,4]"
        )
    if int(match[2] or 1) < 2:
        raise SettingsError(
            f"spark.master is {master!r}: one lost worker would fail the whole batch; allow some"
            " failures of a task, as local[2,4] does"
        )
    cores = os.cpu_count() or 1 if match[1] == "*" else int(match[1])
    if cores < 1:
        raise SettingsError(f"spark.master is {master!r}: at least one core is needed")
    return cores


@contextmanager
def spark_session(
    settings: SparkSettings, *, worker_environment: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Yield the session of this process, started now if there is none (about 10 s).

    A session that was there already is left running and keeps the environment it was started with;
    one that was started here is stopped at the end, its JVM included, so that the next one gets its
    own environment.

    Args:
        settings: master, heap of the JVM and application name.
        worker_environment: variables the workers find in their environment, credentials among
            them. They are in this process's environment only while the JVM starts.

    Raises:
        SettingsError: a master that is refused.
        PrerequisiteError: Java is missing, too old or does not start.
    """
    local_cores(settings.master)
    require_java()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Not getActiveSession(): that one is the thread's, and a context is the process's.
    if SparkContext._active_spark_context is not None:
        yield SparkSession.builder.getOrCreate()
        return
    session = _start(settings, worker_environment or {})
    try:
        yield session
    finally:
        _stop(session)


def _start(settings: SparkSettings, worker_environment: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings.master).appName(settings.app_name)
    for name, value in _configuration(settings).items():
        builder = builder.config(name, value)
    inherited = {
        **worker_environment,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": _LOOPBACK,
    }
    with _environment(inherited):
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise PrerequisiteError(
                f"the JVM of Spark did not start with {settings.driver_memory} of heap: {error}"
            ) from error


def _configuration(settings: SparkSettings) -> dict[str, str]:
    return {
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The rows are few and small; two hundred partitions would be two hundred empty tasks.
        "spark.sql.shuffle.partitions": "4",
        # Placement by task number is exact; merging small partitions would undo it.
        "spark.sql.adaptive.enabled": "false",
        "spark.python.worker.reuse": "true",
        # Sending a part twice is harmless and never useful.
        "spark.speculation": "false",
    }


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _stop(session: SparkSession) -> None:
    """Stop the session and its JVM, which otherwise lives, and serves again, until we end."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    session.stop()
    if gateway is None:
        return
    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    jvm: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if jvm is None:
        return
    if jvm.stdin is not None:
        jvm.stdin.close()  # the JVM ends when its standard input does
    try:
        jvm.wait(_JVM_STOP_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
