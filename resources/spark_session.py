"""One Spark session: classic (a JVM of our own, local or at a standalone master) or Spark Connect.

Owns: the session, its JVM and what they inherit. Both kinds have the methods that we use under the
same names (createDataFrame, addTag, interruptTag), so callers see one. Local Python workers are
this interpreter (in a virtual environment that is not activated they would otherwise be another
python3), and inherit the environment the JVM was started with; that is how credentials reach them.
Remote workers inherit nothing of ours and find their credentials themselves: Spark's configuration,
which is on command lines and web pages for everybody to read, never holds one. Refuses every other
master by name (spark_master.py). pyspark is imported here and in tiering_assets/spark only, inside
functions, because importing it costs a second.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import NAMESPACE_URL, uuid4, uuid5

from tiering_assets.resources.devstack.prerequisites import name_problem, require_java
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_master import Master, Way, parse_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = Path(__file__).with_name("spark_log4j2.properties")
_JVM_STOP_S = 20.0
_REACH_S = 5.0
_EXECUTOR_POLL_S = 0.2
_LOOPBACK = "127.0.0.1"
# The same for every host and user, so that one run can interrupt what a dead one left behind.
_CONNECT_USER = "tierkeeper"
# The JVM carries small rows for a minute or so, and spends half of its CPU on compiling for more.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def spark_session(
    settings: SparkSettings,
    *,
    worker_environment: Mapping[str, str] | None = None,
    run_id: str = "",
    given_up: Callable[[], bool] = lambda: False,
) -> Iterator[SparkSession]:
    """Yield a session; a classic one is started now if this process has none (about 10 s).

    A classic session that was there already is left running and keeps the environment it was
    started with; one that was started here is stopped at the end, its JVM included, so that the
    next one gets its own environment. A Connect session is this run's, and the server keeps it for
    a while after the end: another step of the run may come back to it.

    Args:
        settings: master, heap of the JVM and application name.
        worker_environment: variables that local workers find in their environment, credentials
            among them. They are in this process's environment only while the JVM starts.
        run_id: names the session at a Connect server, see `interrupt_run`; empty is a fresh one.
        given_up: whether nobody wants the session any more; then no executor is waited for.

    Raises:
        SettingsError: a master that is refused.
        PrerequisiteError: Java is missing, too old or does not start; no server listens where the
            master should be, it gives us no executor, or this process has a session elsewhere.
    """
    master = parse_master(settings)
    if master.way is Way.CONNECT:
        with _connected(master, run_id) as remote:
            yield remote
        return
    require_java()
    if master.way is Way.STANDALONE:
        _reach(master)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Not getActiveSession(): that one is the thread's, and a context is the process's.
    running = SparkContext._active_spark_context
    if running is not None:
        _require_same_cluster(master, running.master)
        yield SparkSession.builder.getOrCreate()
        return
    session = _start(settings, master, worker_environment or {})
    try:
        if master.way is Way.STANDALONE:
            _wait_for_executor(session, settings, given_up)
        yield session
    finally:
        _stop(session)


def interrupt_run(settings: SparkSettings, run_id: str, tags: Sequence[str]) -> int:
    """Interrupt what another run's session still executes under these tags; return how many did.

    Only a Connect server can be asked: it goes on when its client is gone, and the session of a run
    has a name that follows from the run's. A classic driver takes its tasks with it when it dies.
    """
    master = parse_master(settings)
    if master.way is not Way.CONNECT:
        return 0
    with _connected(master, run_id) as session:
        return sum(len(session.interruptTag(tag)) for tag in tags)


def load_pyspark(settings: SparkSettings) -> None:
    """Import all of PySpark that sessions and tasks use, so that no other thread imports it, too.

    Its modules import each other in circles: two threads at once may meet half of one.
    """
    import pyspark.sql.classic.dataframe
    import pyspark.sql.pandas.map_ops

    if parse_master(settings).way is Way.CONNECT:
        import pyspark.sql.connect.session  # noqa: F401


@contextmanager
def _connected(master: Master, run_id: str) -> Iterator[SparkSession]:
    """A client of the server's session of this run. Leaving does not end the session there."""
    _reach(master)
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # Any name may be a run's; a session's must be a UUID.
    name = uuid5(NAMESPACE_URL, f"tierkeeper/run/{run_id}") if run_id else uuid4()
    session = ConnectSession(f"{master.url}/;user_id={_CONNECT_USER};session_id={name}")
    # Releasing a session forbids its name for good, and a later step of the run needs it.
    session.release_session_on_close = not run_id
    session.client._release_session_on_exit = False
    try:
        session.conf.set("spark.sql.adaptive.enabled", "false")  # as in _configuration
        yield cast("SparkSession", session)
    finally:
        session.stop()


def _reach(master: Master) -> None:
    """Clients of Spark try for minutes before they say that nobody is there."""
    try:
        socket.create_connection((master.host, master.port), timeout=_REACH_S).close()
    except OSError as error:
        raise PrerequisiteError(
            f"spark.master is {master.url}: no server listens there ({error}); start the server or"
            " correct the setting"
        ) from error


def _require_same_cluster(master: Master, running: str | None) -> None:
    """A local master is what is not set: a session that spark-submit made is then the better
    one.
    """
    if master.way is Way.STANDALONE and running != master.url:
        raise PrerequisiteError(
            f"spark.master is {master.url}, and this process runs a Spark session at {running}: stop"
            " that one, or correct the setting"
        )


def _start(
    settings: SparkSettings, master: Master, worker_environment: Mapping[str, str]
) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings.master).appName(settings.app_name)
    for name, value in _configuration(settings, master).items():
        builder = builder.config(name, value)
    if master.way is Way.LOCAL:
        inherited = {**worker_environment, "PYSPARK_PYTHON": sys.executable}
    else:  # the driver sends this name to the executors
        inherited = {"PYSPARK_PYTHON": settings.python or "python3"}
    inherited["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _driver_host(settings, master) == _LOOPBACK:
        inherited["SPARK_LOCAL_IP"] = _LOOPBACK
    with _environment(inherited), _own_ctrl_c():
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            problem = name_problem() or "its own words are on standard error"
            raise PrerequisiteError(
                f"the JVM of Spark did not start with {settings.driver_memory} of heap; {problem}"
                f" ({error})"
            ) from error


def _wait_for_executor(
    session: SparkSession, settings: SparkSettings, given_up: Callable[[], bool]
) -> None:
    """Spark would wait for ever for workers that are not there, or have too little to give."""
    context: Any = session.sparkContext._jsc.sc()
    deadline = time.monotonic() + settings.start_timeout_s
    while context.getExecutorMemoryStatus().size() < 2:  # the driver itself is one
        if given_up():
            raise PrerequisiteError(f"spark.master is {settings.master}: not waited for any more")
        if time.monotonic() > deadline:
            raise PrerequisiteError(
                f"spark.master is {settings.master}: it gave us no executor within "
                f"{settings.start_timeout_s:g} s (spark.start_timeout_s). Look at its page: it needs "
                f"a worker with a free core and {settings.executor_memory} free "
                "(spark.executor_memory)"
            )
        time.sleep(_EXECUTOR_POLL_S)


def _driver_host(settings: SparkSettings, master: Master) -> str:
    if settings.driver_host:
        return settings.driver_host
    return _LOOPBACK if master.way is Way.LOCAL or master.on_loopback else ""


def _configuration(settings: SparkSettings, master: Master) -> dict[str, str]:
    host = _driver_host(settings, master)
    where = {"spark.driver.host": host} if host else {}
    if host == _LOOPBACK:
        where["spark.driver.bindAddress"] = _LOOPBACK
    if master.way is Way.STANDALONE:
        where["spark.cores.max"] = str(master.cores)
        where["spark.executor.memory"] = settings.executor_memory
    return where | {
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {_SHORT_LIVED}"
        ),
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


@contextmanager
def _own_ctrl_c() -> Iterator[None]:
    """Keep what Ctrl-C does in this process: Spark sets a way of its own, and leaves it there."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


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
