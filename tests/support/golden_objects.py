"""The golden ledgers' objects and facts, read from tests/golden without any code of ours."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"

EntryFact = tuple[int, int, str]  # entry id, payload length, SHA-256 of the payload


@dataclass(frozen=True)
class GoldenLedger:
    """One offloaded ledger; `facts` is its part of the case's manifest."""

    folder: Path
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.folder.name}-{self.facts['ledger_id']}"

    @property
    def ledger_id(self) -> int:
        return int(self.facts["ledger_id"])

    @property
    def has_data(self) -> bool:
        """Large data objects are left out; README.md says which."""
        return Path(self.folder, self.facts["data_file"]).exists()

    def data(self) -> bytes:
        return _read(self.folder / self.facts["data_file"])

    def index(self) -> bytes:
        return _read(self.folder / self.facts["index_file"])

    def znode(self) -> bytes:
        return _read(self.folder / self.facts["bk_znode_file"])

    def entries(self) -> list[EntryFact]:
        lines = _read(self.folder / self.facts["entries_file"]).decode().splitlines()
        rows = [line.split("\t") for line in lines]
        return [(int(entry_id), int(length), digest) for entry_id, length, digest in rows]


def golden_ledgers(root: Path = GOLDEN) -> list[GoldenLedger]:
    """Every ledger below `root` that a broker has offloaded, by case and ledger id."""
    found = []
    for manifest in sorted(root.glob("*/manifest.json")):
        ledgers = json.loads(manifest.read_text())["ledgers"]
        found += [GoldenLedger(manifest.parent, facts) for facts in ledgers if "data_key" in facts]
    return sorted(found, key=lambda ledger: (ledger.folder.name, ledger.ledger_id))


def golden_ledger(case: str, ledger_id: int) -> GoldenLedger:
    return next(
        ledger
        for ledger in golden_ledgers()
        if (ledger.folder.name, ledger.ledger_id) == (case, ledger_id)
    )


def _read(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
