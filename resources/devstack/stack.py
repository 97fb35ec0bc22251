"""A local stack as one object: started, asked, partly stopped, stopped.

Owns: either every wanted server is ready, or none is left running. An attached stack ends with the
process that started it; a detached one stays until `stop()` finds it through its state file. A
start always begins with empty data; a single server stopped and started again keeps its own.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from tiering_assets.resources.devstack.bucket import create_bucket
from tiering_assets.resources.devstack.endpoints import (
    Endpoints,
    endpoints_of,
    environment_of,
    environment_script,
    settings_of,
)
from tiering_assets.resources.devstack.fetch import Progress, fetch_distribution, report_to_stderr
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.ports import choose_ports
from tiering_assets.resources.devstack.prerequisites import find_weed, require_java, require_python
from tiering_assets.resources.devstack.processes import (
    ProcessRef,
    Supervisor,
    end_group,
    is_alive,
    rss_bytes,
)
from tiering_assets.resources.devstack.servers import (
    Credentials,
    Plan,
    cluster_metadata_command,
    server_of,
)
from tiering_assets.resources.devstack.state import (
    STATE_FILE,
    StackState,
    read_state,
    write_private,
    write_state,
)
from tiering_assets.resources.errors import PrerequisiteError, SettingsError
from tiering_assets.resources.settings import Settings

ENVIRONMENT_FILE = "environment.sh"
_MARKER = ".tierkeeper-stack"
_SCRATCH_ROOMS = ("data", "tmp")
_ROOMS = ("conf", "logs", *_SCRATCH_ROOMS)
_LOOK_EVERY_S = 0.1
_STOP_GRACE_S = 20.0
_METADATA_TIMEOUT_S = 300.0
_LOG_LINES = 15
_LOG_ERRORS = 5
_LOG_TAIL_BYTES = 256 * 1024
_ERROR = " ERROR "


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    name: str
    pid: int | None
    alive: bool
    rss_bytes: int


class DevStack:
    """A started stack. Use start() or open(); as a context manager it stops at the end."""

    def __init__(self, state: StackState, supervisor: Supervisor | None, report: Progress) -> None:
        self._state = state
        self._supervisor = supervisor
        self._report = report

    @classmethod
    def start(
        cls,
        directory: Path,
        options: StackOptions | None = None,
        *,
        attached: bool = True,
        report: Progress = report_to_stderr,
    ) -> Self:
        """Fetch what is missing, start every server and return when all are ready (about 25 s).

        Raises PrerequisiteError, with the last lines of its log, when one does not get ready.
        """
        require_python()
        require_java()
        find_weed()
        options = options if options is not None else StackOptions()
        distribution = fetch_distribution(report=report, version=options.pulsar_version)
        directory = directory.resolve()
        for path in (directory, distribution):
            if len(str(path).split()) != 1:
                raise SettingsError(f"bin/pulsar cannot work in a path with blanks: {path}")
        _prepare(directory)
        plan = Plan(
            directory=directory,
            distribution=distribution,
            options=options,
            ports=choose_ports(options),
            credentials=Credentials(
                access_key=f"TK{secrets.token_hex(9).upper()}",
                secret_key=secrets.token_urlsafe(30),
                signing_key=secrets.token_urlsafe(30),
            ),
        )
        stack_id = uuid4().hex
        supervisor = Supervisor(stack_id)
        stack = cls(StackState(stack_id=stack_id, plan=plan, processes={}), supervisor, report)
        try:
            stack._start_all()
            if not attached:
                stack.detach()
        except BaseException:  # Ctrl-C included: half a stack is never left
            supervisor.close()
            (directory / STATE_FILE).unlink(missing_ok=True)
            raise
        return stack

    @classmethod
    def open(cls, directory: Path, *, report: Progress = report_to_stderr) -> Self:
        """Return the stack whose state lies in `directory`. PrerequisiteError if there is none."""
        return cls(read_state(directory.resolve()), None, report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def directory(self) -> Path:
        return self._state.plan.directory

    @property
    def stack_id(self) -> str:
        return self._state.stack_id

    @property
    def options(self) -> StackOptions:
        return self._state.plan.options

    @property
    def endpoints(self) -> Endpoints:
        return endpoints_of(self._state.plan)

    def settings(self) -> Settings:
        """Return tierkeeper's settings for this stack."""
        return settings_of(self._state.plan)

    def environment(self) -> dict[str, str]:
        """Return the TIERKEEPER_* variables for this stack, its S3 keys among them."""
        return environment_of(self.settings())

    def status(self) -> list[ServerStatus]:
        """Return one status per wanted server, in the order of their start."""
        found = []
        for name in self.options.server_names():
            ref = self._state.processes.get(name)
            alive = ref is not None and is_alive(ref)
            found.append(
                ServerStatus(
                    name=name,
                    pid=ref.pid if ref is not None else None,
                    alive=alive,
                    rss_bytes=rss_bytes(ref) if ref is not None else 0,
                )
            )
        return found

    def stop(self) -> None:
        """Kill every server and remove its data; logs and configuration stay. Repeatable."""
        for ref in self._state.processes.values():
            self._end(ref, grace_s=0.0)
        self._state.processes.clear()
        if self._supervisor is not None:
            self._supervisor.close()
        (self.directory / STATE_FILE).unlink(missing_ok=True)
        (self.directory / ENVIRONMENT_FILE).unlink(missing_ok=True)
        for room in _SCRATCH_ROOMS:
            shutil.rmtree(self.directory / room, ignore_errors=True)

    def detach(self) -> None:
        """Leave the servers running after this process; stop() of an opened stack ends them."""
        if self._supervisor is not None:
            self._supervisor.release()
            self._supervisor = None

    def stop_server(self, name: str, *, kill: bool = False) -> None:
        """Stop one server and keep its data: SIGTERM and up to 20 s, or SIGKILL at once."""
        self._end(self._ref(name), grace_s=0.0 if kill else _STOP_GRACE_S)

    def start_server(
        self, name: str, *, broker_conf: Mapping[str, str | None] | None = None
    ) -> None:
        """Start a stopped server on its own data and ports; return when it is ready.

        `broker_conf` overrides lines of broker.conf for this one start.
        """
        if is_alive(self._ref(name)):
            raise SettingsError(f"{name} is running; stop it first")
        if self._supervisor is not None:
            self._spawn(name, self._supervisor, broker_conf)
            self._wait_ready(name)
            return
        # Opened through the state file: guarded while it starts, left running afterwards.
        supervisor = Supervisor(self.stack_id)
        try:
            self._spawn(name, supervisor, broker_conf)
            self._wait_ready(name)
            supervisor.release()
        except BaseException:
            supervisor.close()
            raise

    def _start_all(self) -> None:
        plan, supervisor = self._state.plan, self._supervisor
        if supervisor is None:
            raise SettingsError("an opened stack cannot be started as a whole")
        began = time.monotonic()
        self._report(f"starting {', '.join(self.options.server_names())} in {self.directory}")
        self._spawn("s3", supervisor)
        self._spawn("zookeeper", supervisor)
        self._wait_ready("zookeeper")
        if self.options.bookies > 0:
            self._initialize_cluster_metadata(supervisor)
        bookies = [name for name in self.options.server_names() if name.startswith("bookie")]
        for name in bookies:
            self._spawn(name, supervisor)
        self._wait_ready("s3")
        create_bucket(endpoints_of(plan))
        for name in bookies:
            self._wait_ready(name)
        for name in self.options.broker_names():
            self._start_broker(name, supervisor)  # one by one: the first unpacks the offloaders
        write_private(self.directory / ENVIRONMENT_FILE, environment_script(self.environment()))
        self._report(f"all servers are ready after {time.monotonic() - began:.1f} s")

    def _start_broker(self, name: str, supervisor: Supervisor) -> None:
        """Start it once more if it ends itself: one does that whom a busy machine kept waiting."""
        self._spawn(name, supervisor)
        try:
            self._wait_ready(name)
        except PrerequisiteError as error:
            if is_alive(self._ref(name)):
                raise
            self._report(f"  {error}\n  {name} is started once more")
            supervisor.end(self._ref(name))
            self._spawn(name, supervisor)
            self._wait_ready(name)

    def _spawn(
        self,
        name: str,
        supervisor: Supervisor,
        broker_conf: Mapping[str, str | None] | None = None,
    ) -> None:
        plan = self._state.plan
        if broker_conf:
            of_one = plan.options.one_broker_conf
            changed = {**of_one, name: {**of_one.get(name, {}), **broker_conf}}
            plan = replace(plan, options=replace(plan.options, one_broker_conf=changed))
        server = server_of(plan, name)
        for path, text in server.files:
            write_private(path, text)
        self._state.processes[name] = supervisor.spawn(
            server.argv,
            environment=server.environment,
            cwd=server.cwd,
            log=self._state.plan.log(name),
        )
        write_state(self._state)

    def _wait_ready(self, name: str) -> None:
        server = server_of(self._state.plan, name)
        began = time.monotonic()
        while not server.is_ready():
            if not is_alive(self._ref(name)):
                raise self._failure(name, "ended before it was ready")
            if time.monotonic() - began > server.ready_timeout_s:
                raise self._failure(name, f"was not ready after {server.ready_timeout_s:.0f} s")
            time.sleep(_LOOK_EVERY_S)
        if not is_alive(self._ref(name)):
            raise self._failure(name, "ended, and somebody else answers on its port")
        self._report(f"  {name} is ready ({time.monotonic() - began:.1f} s)")

    def _initialize_cluster_metadata(self, supervisor: Supervisor) -> None:
        plan, name = self._state.plan, "cluster-metadata"
        argv, environment = cluster_metadata_command(plan)
        began = time.monotonic()
        ref = supervisor.spawn(
            argv, environment=environment, cwd=self.directory, log=plan.log(name)
        )
        # Not is_alive(): a JVM's first thread is a zombie before its last one has ended, and only
        # then is there an exit code.
        while (code := supervisor.reap(ref)) is None:
            if time.monotonic() - began > _METADATA_TIMEOUT_S:
                raise self._failure(name, f"did not end within {_METADATA_TIMEOUT_S:.0f} s")
            time.sleep(_LOOK_EVERY_S)
        supervisor.end(ref)
        if code != 0:
            raise self._failure(name, f"ended with {code}")

    def _ref(self, name: str) -> ProcessRef:
        try:
            return self._state.processes[name]
        except KeyError:
            known = ", ".join(self._state.processes)
            raise SettingsError(f"this stack has no server {name!r}; it has {known}") from None

    def _end(self, ref: ProcessRef, *, grace_s: float) -> None:
        if self._supervisor is not None:
            self._supervisor.end(ref, grace_s=grace_s)
        else:
            end_group(ref, grace_s=grace_s)

    def _failure(self, name: str, what: str) -> PrerequisiteError:
        log = self._state.plan.log(name)
        data = log.read_bytes()[-_LOG_TAIL_BYTES:] if log.exists() else b""
        lines = data.decode(errors="replace").splitlines()
        errors = [line for line in lines[:-_LOG_LINES] if _ERROR in line][:_LOG_ERRORS]
        told = "\n".join([*errors, *lines[-_LOG_LINES:]])
        return PrerequisiteError(f"{name} {what}; first errors and the end of {log}:\n{told}")


def _prepare(directory: Path) -> None:
    """Make the directory an empty stack directory; refuse one that holds anything else."""
    marker = directory / _MARKER
    if directory.exists() and not marker.exists() and any(directory.iterdir()):
        raise SettingsError(f"{directory} holds files that are not a stack's; choose another")
    if (directory / STATE_FILE).exists():
        running = [one.name for one in DevStack.open(directory).status() if one.alive]
        if running:
            raise PrerequisiteError(
                f"a stack runs in {directory} ({', '.join(running)}): `tierkeeper stack down` first"
            )
    directory.mkdir(parents=True, exist_ok=True)
    marker.touch()
    (directory / STATE_FILE).unlink(missing_ok=True)
    for room in _ROOMS:
        shutil.rmtree(directory / room, ignore_errors=True)
        (directory / room).mkdir()
    (directory / "data" / "s3" / "volumes").mkdir(parents=True)
