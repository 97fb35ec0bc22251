"""A second S3 server: the Versity gateway over a directory, built from its Go module where Go is.

Owns: nobody has to have Go. Where the gateway cannot be built, `build` says why, and the benchmark
goes on without its rows. It is built once, into build/go, at the version below.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.agents import ROOT, Owned
from tiering_assets.resources.devstack.config import HOST

VERSION = "v1.8.0"
MODULE = "github.com/versity/versitygw/cmd/versitygw"
PROGRAM = ROOT / "build" / "go" / "bin" / "versitygw"
_BUILD_TIMEOUT_S = 900.0
_READY_TIMEOUT_S = 30.0


class AbsentError(Exception):
    """There is no gateway on this machine, and why."""


def build() -> Path:
    """The gateway's program, built if it was not. AbsentError where that is not possible."""
    if PROGRAM.exists() and VERSION in _version_of(PROGRAM):
        return PROGRAM
    go = shutil.which("go")
    if go is None:
        raise AbsentError(f"there is no Go here to build {MODULE}@{VERSION} with")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            [go, "install", f"{MODULE}@{VERSION}"],
            env={**os.environ, "GOBIN": str(PROGRAM.parent)},
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AbsentError(f"{MODULE}@{VERSION} took longer than {_BUILD_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise AbsentError(f"{MODULE}@{VERSION} cannot be built: {last}")
    return PROGRAM


def _version_of(program: Path) -> str:
    """The modules that Go wrote into the program; all we know where there is no Go to read it."""
    go = shutil.which("go")
    if go is None:
        return VERSION  # it was built at some time, and nobody can build another one
    said = subprocess.run(
        [go, "version", "-m", str(program)], capture_output=True, text=True, check=False
    )
    return said.stdout


class Gateway(Owned):
    """A running gateway with an empty directory."""

    def __init__(self, program: Path, directory: Path, *, access_key: str, secret_key: str) -> None:
        port = _free_port()
        self.endpoint = f"http://{HOST}:{port}"
        self._requests = directory / "requests.log"
        objects = directory / "objects"
        objects.mkdir(parents=True)
        log = directory / "versitygw.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *(str(program), "--port", f"{HOST}:{port}", "--quiet", "--keep-alive"),
                    *("--access-log", str(self._requests), "posix", str(objects)),
                ],
                env={
                    **os.environ,
                    "ROOT_ACCESS_KEY_ID": access_key,
                    "ROOT_SECRET_ACCESS_KEY": secret_key,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=directory,
                start_new_session=True,
            )
        try:
            self._wait_ready(port, log)
        except BaseException:
            self.close()
            raise

    def requests(self) -> Counter[str]:
        """How many requests it has answered so far, by kind."""
        text = self._requests.read_text() if self._requests.exists() else ""
        return requests_in(text)

    def _wait_ready(self, port: int, log: Path) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                return
            time.sleep(0.05)
        last = log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise AbsentError(f"the gateway did not answer on port {port}: {last}")


def requests_in(text: str) -> Counter[str]:
    """Requests of an access log, one a line, by the operation that the line names."""
    return Counter(
        next((word for word in line.split() if word.startswith(("s3_", "REST."))), "unknown")
        for line in text.splitlines()
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
