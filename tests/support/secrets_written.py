"""Looking for secrets in everything that was written, and a ledger that no one reads without one.

The search knows the ways in which a value is written down by accident.
"""

from __future__ import annotations

import base64
import json
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote

from tests.support import bookie_contract
from tests.support.layouts import plan_layout_from_sizes
from tests.support.tiered_cluster import TieredCluster
from tiering_assets.resources.bookkeeper.digest import mac_key, master_key
from tiering_assets.resources.bookkeeper.ledger import DigestType, LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.tasks.descriptors import BlockTask, LedgerSource, TaskKind

PASSWORD = "planted-ledger-password-51c9"
PASSWORD_KEYS = {
    "ledger password": PASSWORD,
    "master key": master_key(PASSWORD.encode()),
    "mac key": mac_key(PASSWORD.encode()),
}
HMAC_ATTEMPT = "attempt-hmac"
_ENTRIES = 120
# Far above the ids that the broker gets; bookies refuse an id again whose ledger was deleted.
_IDS = count(61_000_000 + random.randrange(1_000_000))


def forms_of(value: str | bytes) -> set[bytes]:
    """The bytes in which a value may lie in a file: as it is, escaped, in base64, in hex."""
    raw = value if isinstance(value, bytes) else value.encode()
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    if not isinstance(value, bytes):
        forms |= {quote(value, safe="").encode(), json.dumps(value)[1:-1].encode()}
    for shift in range(3):  # base64 of a longer text that has it somewhere
        encoded = base64.b64encode(b"\0" * shift + raw)
        forms.add(encoded[(0, 2, 3)[shift] : len(encoded) // 4 * 4 - 4])
    return forms


@dataclass(frozen=True)
class Written:
    """Everything below a folder, databases as their statements, and objects of the bucket."""

    places: dict[str, list[tuple[str, bytes]]]

    @classmethod
    def below(cls, folders: Mapping[str, Path], objects: ObjectStore | None = None) -> Written:
        places: dict[str, list[tuple[str, bytes]]] = {name: [] for name in folders}
        for name, folder in folders.items():
            for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
                if not path.is_file():
                    continue
                body = path.read_bytes()
                places[name].append((f"{path}", body))
                if body.startswith(b"SQLite format 3"):  # a value may lie across two pages
                    with closing(sqlite3.connect(path)) as database:
                        text = "\n".join(database.iterdump())
                    places[name].append((f"{path} (dump)", text.encode(errors="replace")))
        places["bucket"] = []
        for summary in () if objects is None else objects.list_objects():
            found = None if objects is None else objects.get(summary.key)
            if found is not None:
                told = f"{summary.key} {dict(found.head.metadata)}".encode()
                places["bucket"].append((summary.key, told + found.body))
        return cls(places)

    def having(self, value: str | bytes) -> list[tuple[str, str]]:
        """(place, file) wherever a form of the value lies."""
        forms = forms_of(value)
        return [
            (place, name)
            for place, files in self.places.items()
            for name, body in files
            if any(form in body for form in forms)
        ]


@contextmanager
def hmac_tasks(cluster: TieredCluster) -> Iterator[list[BlockTask]]:
    """Tasks that read a ledger whose digests need the planted password, from real bookies."""
    store, ledgers = cluster.steps.metadata, cluster.steps.ledgers
    nodes: list[tuple[str, int]] = []

    def create(metadata: LedgerMetadata) -> None:
        path = ledgers.path(metadata.ledger_id)
        nodes.append((path, store.create(path, encode_ledger_metadata(metadata)).version))

    settings = cluster.steps.settings.bookies
    with BookiePool(settings, ledgers.resolve) as pool:
        written = bookie_contract.write_ledger(
            bookie_contract.Cluster(
                pool=pool,
                bookies=sorted(cluster.endpoints.bookies),
                next_ledger_id=lambda: next(_IDS),
                create=create,
                close=lambda _metadata: None,
                settings=settings,
            ),
            entries=_ENTRIES,
            digest_type=DigestType.HMAC,
            password=PASSWORD.encode(),
        )
    sizes = [len(bookie_contract.payload_of(entry_id)) for entry_id in range(_ENTRIES)]
    task = BlockTask(
        kind=TaskKind.READ_SOURCE,
        attempt=HMAC_ATTEMPT,
        source=LedgerSource.of(written, dict(cluster.endpoints.bookies)),
        data_key="no-object",
        blocks=plan_layout_from_sizes(sizes, block_bytes_max=1 << 16),
    )
    try:
        yield [task]
    finally:
        for path, version in nodes:
            store.delete(path, expected_version=version)
