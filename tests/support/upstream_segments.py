"""Pulsar's own read handle for streaming segments, asked by a program of ours in Java.

The compiler is one that is written in Java and is fetched as the servers are: no JDK is needed.
"""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiering_assets.resources.devstack.artifacts import COMPILER
from tiering_assets.resources.devstack.fetch import fetch_distribution, fetch_file
from tiering_assets.resources.devstack.prerequisites import require_java

_SOURCE = Path(__file__).with_name("java") / "ReadSegments.java"
_PATIENCE_S = 240
Answer = list[tuple[int, int, int, str]] | str
"""Ledger, entry, length and SHA-256 of each entry that came, or why none did."""


@dataclass(frozen=True)
class UpstreamReader:
    """A compiled program. `answers` starts a JVM."""

    java: Path
    class_path: str

    @classmethod
    def compiled(cls, folder: Path) -> UpstreamReader:
        """Unpack the offloader and compile into a folder."""
        java, pulsar = require_java(), fetch_distribution()
        [nar] = sorted((pulsar / "offloaders").glob("tiered-storage-jcloud-*.nar"))
        with zipfile.ZipFile(nar) as archive:
            archive.extractall(folder / "nar")
        jars = sorted((folder / "nar" / "META-INF" / "bundled-dependencies").glob("*.jar"))
        known = [folder / "nar", *jars, *sorted((pulsar / "lib").glob("*.jar"))]
        class_path = os.pathsep.join(map(str, known))
        out = folder / "classes"
        subprocess.run(
            [
                *(str(java), "-jar", str(fetch_file(COMPILER)), "-17", "-nowarn", "-proc:none"),
                *("-classpath", class_path, "-d", str(out), str(_SOURCE)),
            ],
            check=True,
            capture_output=True,
            timeout=_PATIENCE_S,
        )
        return cls(java, os.pathsep.join([str(out), class_path]))

    def answers(
        self, objects: Path, ledger_id: int, segments: Sequence[str], ranges: Sequence[str]
    ) -> Mapping[str, Answer]:
        """What comes for each FIRST-LAST of a ledger, by range."""
        done = subprocess.run(
            [
                *(str(self.java), "-Xmx1500m", "-classpath", self.class_path, "ReadSegments"),
                *(str(objects), str(ledger_id), ",".join(segments), *ranges),
            ],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        found: dict[str, Answer] = {}
        waiting, now = [*ranges], ""
        for line in done.stdout.splitlines():
            if waiting and line == waiting[0]:
                now = waiting.pop(0)
                found[now] = []
            elif line.startswith(("failed ", "no answer")):
                found[now] = line
            elif now and isinstance(rows := found[now], list):
                ledger, entry, length, digest = line.split()
                rows.append((int(ledger), int(entry), int(length), digest))
        if done.returncode or found.keys() != {*ranges}:
            raise AssertionError(f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return found
