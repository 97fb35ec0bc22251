"""Dagster's pages of the demo's saved DAGSTER_HOME, and Debian's Chromium to look at them.

The demo is run first where no demo was. A copy of its home gets a run that failed, launched where
no servers answer.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import requests

from tests.support.spark_cluster import free_port
from tiering_assets.demo.jobs import WORKSPACE, JobFailedError, WorkspaceJobs

ROOT = Path(__file__).parents[2]
HOME = ROOT / "dagster_home"
BUILD = ROOT / "build" / "browser"
SUMMARY = ROOT / "build" / "demo-summary.json"
CHROMIUM = ("chromium", "chromium-browser")
SIZE = {"width": 1600, "height": 1000}
START_S = 120.0


def copied_home() -> Path:
    """Of the demo, with a run that failed."""
    BUILD.mkdir(parents=True, exist_ok=True)
    if not SUMMARY.exists() or not (HOME / "storage").exists():
        command = [str(Path(sys.executable).with_name("tierkeeper")), "demo"]
        subprocess.run(command, check=True, cwd=ROOT)
    home = BUILD / "home"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(HOME, home)
    _run_that_fails(home)
    return home


def _run_that_fails(home: Path) -> None:
    """Launch a run where no servers answer."""
    jobs = WorkspaceJobs(
        project=ROOT, dagster_home=home, environment=_no_servers(), log=BUILD / "failed.log"
    )
    try:
        with jobs:
            jobs.run("offload", lambda _line: None)
    except JobFailedError:
        return
    raise SystemExit("the run that was to fail did not")


def _no_servers() -> dict[str, str]:
    """Settings by which nothing answers."""
    return {
        "TIERKEEPER_METADATA_STORE": f"zk:127.0.0.1:{free_port()}",
        "TIERKEEPER_METADATA_CONNECT_TIMEOUT_S": "1",
        "TIERKEEPER_STORE_BUCKET": "b",
        "TIERKEEPER_DAGSTER_RUNNER": "local",
    }


@contextmanager
def pages(home: Path, *, daemon: bool = False) -> Iterator[str]:
    """Dagster's web server over a home; with its daemon it is what `make ui` starts, and what is
    launched there finds no servers.
    """
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "dagster_webserver", "-w", WORKSPACE]
    command += ["-h", "127.0.0.1", "-p", str(port)]
    environment = {**_plain_environment(), "DAGSTER_HOME": str(home)}
    if daemon:
        command, environment = [str(ROOT / ".ci/ui")], environment | _no_servers()
        environment["PORT"] = str(port)
    with (BUILD / "webserver.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_hear_ctrl_c,
        )
    try:
        until = time.monotonic() + START_S
        while not _answers(base):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"Dagster's web server did not start; {BUILD / 'webserver.log'}")
            time.sleep(0.3)
        yield base
    finally:
        server.terminate()
        server.wait()


def _hear_ctrl_c() -> None:
    """`dagster dev` ends what it started by this signal, which a shell's `&` has all ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "TIERKEEPER_" not in name}


def _answers(base: str) -> bool:
    try:
        return requests.get(f"{base}/server_info", timeout=5).ok
    except requests.RequestException:
        return False


def chromium() -> str:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        raise SystemExit("no Chromium: install Debian's package `chromium`, then run this again")
    return found


@contextmanager
def chromium_pages(base: str) -> Iterator[Any]:
    """Makes a page of a person who has never been there, already at the first one."""
    playwright = import_module("playwright.sync_api")  # of requirements/browser.lock alone
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])

        def make() -> Any:
            page = browser.new_page(viewport=SIZE)
            page.goto(base)
            settle(page)
            return page

        yield make
        browser.close()


def settle(page: Any) -> None:
    """Until it asks for nothing more."""
    page.wait_for_load_state("networkidle")
