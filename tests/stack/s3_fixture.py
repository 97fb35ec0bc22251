"""A real S3 server for the object store tests: one `weed mini` per session, on free ports.

Everything binds 127.0.0.1, telemetry is off, and the filer's port is closed to strangers by a JWT
key. The server gets its own process group, so stopping it by that group leaves no child behind.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class S3Server:
    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports of which port + 10000 is free, too: each of the server's ports opens that for gRPC."""
    found: list[int] = []
    while len(found) < count:
        port = 20000 + secrets.randbelow(20000)
        if port not in found and _is_free(port) and _is_free(port + 10000):
            found.append(port)
    return found


def _wait_until_it_answers(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"weed ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            if requests.get(server.endpoint, timeout=2).status_code < 500:
                return
        except requests.RequestException:
            pass  # not listening yet
        time.sleep(0.1)
    raise RuntimeError(f"weed gave no answer in {START_TIMEOUT_S} s: {log.read_text()[-2000:]}")


@contextmanager
def running_s3_server(home: Path) -> Iterator[S3Server]:
    """Start the server with its data below `home`; stop it at the end, by its process group."""
    binary = Path(sysconfig.get_path("scripts")) / "weed"
    s3, master, volume, filer, admin = free_ports(5)
    server = S3Server(f"http://127.0.0.1:{s3}", "test-access-key", secrets.token_hex(16))
    credentials = [{"accessKey": server.access_key, "secretKey": server.secret_key}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    identity = {"name": "tests", "credentials": credentials, "actions": actions}
    (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (home / "security.toml").write_text(
        "".join(
            f'[jwt.{section}]\nkey = "{secrets.token_hex(16)}"\n'
            for section in ("filer_signing", "filer_signing.read")
        )
    )
    (home / "data").mkdir()
    # fmt: off
    command = [
        str(binary), "-logtostderr=true", "mini", f"-dir={home}/data",
        "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false",
        "-webdav=false", "-admin.ui=false", f"-s3.port={s3}", "-s3.port.iceberg=0",
        "-s3.port.lance=0", f"-s3.config={home}/s3.json", "-s3.autoCreateBucket=false",
        "-s3.allowDeleteBucketNotEmpty=false", f"-master.port={master}", f"-volume.port={volume}",
        # A bucket takes a volume of its own; by default there are as many as GiB free on the disk.
        "-volume.max=1000",
        f"-filer.port={filer}", f"-admin.port={admin}", f"-filer.localSocket={home}/f.sock",
        f"-s3.localSocket={home}/s.sock", "-s3.concurrentUploadLimitMB=256",
        "-s3.readerCacheSizeMB=64",
    ]
    # fmt: on
    log = home / "weed.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "GOMEMLIMIT": "512MiB"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(server, process, log)
        yield server
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=10)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    # A short path: the server's Unix sockets lie below it, and their names end at 108 bytes.
    with running_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
