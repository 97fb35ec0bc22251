"""A running `tierkeeper metrics serve`, as tests scrape it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.cli_shell import COMMAND
from tests.support.tiered_cluster import PATIENCE_S, wait_until
from tiering_assets.resources.devstack.stack import DevStack

Scraped = dict[tuple[str, ...], float]


class MetricsServer:
    """Samples by name and values of labels."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self._log = process, log
        wait_until(self._address, "it listens")

    def _address(self) -> re.Match[str] | None:
        assert self.process.poll() is None, self._log.read_text()
        return re.search(r"http://(\S+)/metrics", self._log.read_text())

    def scrape(self) -> Scraped:
        address = self._address()
        assert address is not None
        with urllib.request.urlopen(address.group(), timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            text = answer.read().decode()
        families = text_string_to_metric_families(text)
        return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}

    def survey(self, *, good: bool = True) -> Scraped:
        """What is served after a survey that began now; a bad one need not have."""
        surveys = ("tierkeeper_surveys_total", "success" if good else "failure")
        before = self.scrape()[surveys]
        wait_until(lambda: self.scrape()[surveys] >= before + 1 + good, "new surveys")
        return self.scrape()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def serving(
    stack: DevStack, directory: Path, changes: Mapping[str, str], *, port: int = 0
) -> Iterator[MetricsServer]:
    """With the stack's settings and these variables, in `directory`; a survey every second."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TIERKEEPER_")}
    log = directory / "serve.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "metrics", "serve", "--port", str(port), "--every", "1"],
            env=kept | stack.environment() | dict(changes),
            cwd=directory,
            stderr=stderr,
        )
    try:
        yield MetricsServer(process, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=PATIENCE_S)
