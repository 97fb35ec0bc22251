"""Fetch the server distributions once per user and machine.

Owns: a directory named after the pins exists only if every byte in it came from archives with the
pinned SHA-512. Unpacking happens in a temporary directory that is renamed when complete; a file
lock keeps two processes from fetching twice. Downloads go through the Ivy that PySpark ships,
whose ibiblio resolver knows the public Maven repository, so no host is named here.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import platformdirs

from tiering_assets.resources.devstack.artifacts import (
    DISTRIBUTIONS,
    IVY_SETTINGS_XML,
    PULSAR_VERSION,
    Artifact,
    Distribution,
    ivy_module_xml,
)
from tiering_assets.resources.devstack.prerequisites import require_java
from tiering_assets.resources.devstack.processes import ProcessRef, Supervisor
from tiering_assets.resources.errors import PrerequisiteError

Progress = Callable[[str], None]

_REPORT_EVERY_S = 5.0
_LOOK_EVERY_S = 0.05
_DOWNLOAD_TIMEOUT_S = 1800.0
_READ_BYTES = 1024 * 1024
_MIB = 1024 * 1024


def report_to_stderr(line: str) -> None:
    """Write one progress line."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def cache_dir() -> Path:
    """Return the user's cache directory of this project."""
    return Path(platformdirs.user_cache_dir("tierkeeper"))


def distribution_dir(cache: Path, version: str = PULSAR_VERSION) -> Path:
    """Return where the pinned distribution lies, or will lie, in `cache`."""
    pins = DISTRIBUTIONS[version]
    server, offloaders = pins.server, pins.offloaders
    return cache / f"pulsar-{version}-{server.sha512[:8]}-{offloaders.sha512[:8]}"


def fetch_distribution(
    cache: Path | None = None,
    report: Progress = report_to_stderr,
    *,
    version: str = PULSAR_VERSION,
) -> Path:
    """Return the unpacked Pulsar distribution with its offloaders, fetched first if need be.

    `version` is one of artifacts.DISTRIBUTIONS.

    Raises PrerequisiteError when Java is missing or of the wrong release, when the download fails,
    or when an archive is not the pinned one.
    """
    root = cache if cache is not None else cache_dir()
    pins, target = DISTRIBUTIONS[version], distribution_dir(root, version)
    if target.is_dir():
        return target
    java = require_java()
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root / "fetch.lock", report):
        if target.is_dir():  # another process was faster
            return target
        for abandoned in root.glob("unpack-*"):  # of a fetch that was killed
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="unpack-", dir=root) as scratch:
            work = Path(scratch)
            for artifact in (pins.server, pins.offloaders):
                _download(artifact, java=java, cache=root, out=work, report=report)
                require_pinned(work / artifact.file_name, artifact)
            report("unpacking")
            unpacked = _unpack(work, pins)
            unpacked.rename(target)
        # Kept until now so that a broken download resumes from what is there.
        shutil.rmtree(root / "ivy", ignore_errors=True)
    report(f"Pulsar {version} is ready in the cache")
    return target


def fetch_file(
    artifact: Artifact, cache: Path | None = None, report: Progress = report_to_stderr
) -> Path:
    """Return one archive as it is, fetched first if need be. Raises as fetch_distribution does."""
    root = cache if cache is not None else cache_dir()
    target = root / f"{artifact.sha512[:8]}-{artifact.file_name}"
    if target.is_file():
        return target
    java = require_java()
    root.mkdir(parents=True, exist_ok=True)
    with (
        _lock(root / "fetch.lock", report),
        tempfile.TemporaryDirectory(prefix="unpack-", dir=root) as scratch,
    ):
        if target.is_file():  # another process was faster
            return target
        work = Path(scratch)
        _download(artifact, java=java, cache=root, out=work, report=report)
        require_pinned(work / artifact.file_name, artifact)
        (work / artifact.file_name).replace(target)
        shutil.rmtree(root / "ivy", ignore_errors=True)
    return target


def require_pinned(path: Path, artifact: Artifact) -> None:
    """Raise PrerequisiteError unless the file has the pinned length and SHA-512."""
    size = path.stat().st_size
    digest = hashlib.sha512()
    with path.open("rb") as archive:
        while piece := archive.read(_READ_BYTES):
            digest.update(piece)
    if (size, digest.hexdigest()) != (artifact.size_bytes, artifact.sha512):
        raise PrerequisiteError(
            f"{artifact.file_name} is not the pinned archive: expected {artifact.size_bytes} "
            f"bytes with SHA-512 {artifact.sha512[:16]}…, got {size} bytes with "
            f"{digest.hexdigest()[:16]}…. Try again; if it stays so, do not run it"
        )


@contextmanager
def _lock(path: Path, report: Progress) -> Iterator[None]:
    with path.open("w") as holder:  # the kernel drops the lock when this process dies
        try:
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process is fetching the servers; waiting for it")
            fcntl.flock(holder, fcntl.LOCK_EX)
        yield


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PrerequisiteError("pyspark is missing, and with it Apache Ivy: run `make setup`")
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise PrerequisiteError("this pyspark ships no ivy-*.jar: install the locked version")
    return jars[-1]


def _download(artifact: Artifact, *, java: Path, cache: Path, out: Path, report: Progress) -> None:
    module = out / f"{artifact.name}.xml"
    module.write_text(ivy_module_xml(artifact))
    settings = out / "ivysettings.xml"
    settings.write_text(IVY_SETTINGS_XML)
    log = out / f"{artifact.name}.log"
    argv = [str(java), f"-Divy.default.ivy.user.dir={cache / 'ivy'}", "-jar", str(_ivy_jar())]
    argv += [
        "-settings",
        str(settings),
        "-cache",
        str(cache / "ivy" / "cache"),
        "-ivy",
        str(module),
        "-confs",
        "default",
    ]
    argv += ["-retrieve", f"{out}/[artifact]-[revision](-[classifier]).[ext]"]
    report(f"fetching {artifact.file_name} ({artifact.size_bytes // _MIB} MiB)")
    supervisor = Supervisor(uuid4().hex)  # a killed fetch leaves no download behind, either
    try:
        ref = supervisor.spawn(argv, environment=os.environ, cwd=out, log=log)
        code = _wait_reporting(supervisor, ref, cache / "ivy", artifact, report)
    finally:
        supervisor.close()
    if code != 0 or not (out / artifact.file_name).is_file():
        said = log.read_text(errors="replace").strip().splitlines()
        problems = [line.strip() for line in said if "WARN" in line or "ERROR" in line][:6]
        raise PrerequisiteError(
            f"{artifact.file_name} could not be downloaded (Ivy ended with {code}):"
            f" {' | '.join(problems or said[-3:])}; is the public Maven repository reachable?"
        )


def _wait_reporting(
    supervisor: Supervisor, ref: ProcessRef, cache: Path, artifact: Artifact, report: Progress
) -> int:
    began = reported = time.monotonic()
    # Not is_alive(): a JVM's first thread is a zombie before its last one has ended, and only
    # then is there an exit code.
    while (code := supervisor.reap(ref)) is None:
        time.sleep(_LOOK_EVERY_S)
        now = time.monotonic()
        if now - began > _DOWNLOAD_TIMEOUT_S:
            raise PrerequisiteError(
                f"{artifact.file_name} was not downloaded within {_DOWNLOAD_TIMEOUT_S:.0f} s;"
                " try again"
            )
        if now - reported > _REPORT_EVERY_S:
            reported = now
            got = sum(_size(path) for path in cache.rglob("*"))
            report(f"  {artifact.name}: {got // _MIB} MiB in the cache after {now - began:.0f} s")
    return code


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # Ivy renames its .part files
        return 0


def _unpack(work: Path, pins: Distribution) -> Path:
    """Unpack both archives and return the distribution with the offloaders inside it."""
    for artifact, name in ((pins.server, "server"), (pins.offloaders, "offloaders")):
        with tarfile.open(work / artifact.file_name) as archive:
            archive.extractall(work / name, filter="data")
    server = _only_child(work / "server", pins.server)
    nars = sorted((work / "offloaders").rglob("*.nar"))
    if not nars:
        raise PrerequisiteError(f"{pins.offloaders.file_name} holds no offloader (*.nar)")
    # Inside the distribution and nowhere else: a namespace's policy object resets the setting
    # offloadersDirectory to ./offloaders.
    (server / "offloaders").mkdir(exist_ok=True)
    for nar in nars:
        nar.rename(server / "offloaders" / nar.name)
    return server


def _only_child(parent: Path, artifact: Artifact) -> Path:
    children = list(parent.iterdir())
    if len(children) != 1 or not children[0].is_dir():
        raise PrerequisiteError(f"{artifact.file_name} has an unexpected layout: {children}")
    return children[0]
