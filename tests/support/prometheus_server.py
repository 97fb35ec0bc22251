"""A real Prometheus of Debian's package: fetched once, unpacked without root, run on 127.0.0.1.

Owns: the package comes by `apt-get download` from wherever the machine's own lists say, and lies
below build/. Nothing is installed. The server and its folder end with whoever started it.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from tests.support.spark_cluster import free_port

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / "build/prometheus"
_READY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Programs:
    """The two programs of the package."""

    prometheus: Path
    promtool: Path

    @property
    def version(self) -> str:
        said = subprocess.run(
            [self.prometheus, "--version"], capture_output=True, text=True, check=True
        )
        return (said.stdout + said.stderr).splitlines()[0]

    def test_rules(self, tests: Mapping[str, Any], folder: Path) -> str | None:
        """What promtool finds wrong with these tests, None if nothing."""
        path = folder / "promtool.yml"
        path.write_text(yaml.safe_dump(dict(tests)), encoding="utf-8")
        done = subprocess.run(
            [self.promtool, "test", "rules", path], capture_output=True, text=True, check=False
        )
        return None if done.returncode == 0 else done.stdout + done.stderr


def fetched_programs() -> Programs:
    """From build/prometheus; downloaded and unpacked there where they are not yet.

    RuntimeError says what apt-get or dpkg-deb did.
    """
    programs = Programs(KEPT / "root/usr/bin/prometheus", KEPT / "root/usr/bin/promtool")
    if programs.prometheus.exists() and programs.promtool.exists():
        return programs
    KEPT.mkdir(parents=True, exist_ok=True)
    _run("apt-get", "download", "prometheus")
    package = max(KEPT.glob("prometheus_*.deb"))
    _run("dpkg-deb", "-x", str(package), "root")
    return programs


def _run(*words: str) -> None:
    try:
        done = subprocess.run(words, cwd=KEPT, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RuntimeError(f"{words[0]} is missing: Debian's package is fetched by it") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} in {KEPT}: {done.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server that scrapes and evaluates every second."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The vector that it has now. AssertionError with what it says of a bad expression."""
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def label_values(self, metric: str, label: str) -> list[str]:
        found: list[str] = self._get(f"label/{label}/values", **{"match[]": metric})
        return found

    def states(self) -> dict[str, set[str]]:
        """Of each alert that is there: pending or firing."""
        found: dict[str, set[str]] = {}
        for one in self._get("alerts")["alerts"]:
            found.setdefault(one["labels"]["alertname"], set()).add(one["state"])
        return found

    def is_firing(self, alert: str) -> bool:
        return "firing" in self.states().get(alert, set())

    def is_quiet(self, alert: str) -> bool:
        """Neither firing nor pending."""
        return alert not in self.states()

    def value(self, expression: str) -> float | None:
        """Of an expression with one value at most."""
        found = self.query(expression)
        assert len(found) < 2, f"{expression}: {found}"
        return float(found[0]["value"][1]) if found else None

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error


@contextmanager
def running_prometheus(
    programs: Programs, folder: Path, *, target: str, rules: Mapping[str, Any]
) -> Iterator[Prometheus]:
    """Scrapes `target` (host:port) under these rules; its data lie in `folder`."""
    (folder / "rules.yml").write_text(yaml.safe_dump(dict(rules)), encoding="utf-8")
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": "tierkeeper", "static_configs": [{"targets": [target]}]},
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_port()
    words = [
        str(programs.prometheus),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    log = folder / "prometheus.log"
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, cwd=folder)
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + _READY_S
        while not server.is_ready():
            alive = process.poll() is None and time.monotonic() < deadline
            assert alive, f"Prometheus does not get ready: {log.read_text(encoding='utf-8')}"
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=_READY_S)
