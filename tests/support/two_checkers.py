"""Both checkers over one set of bytes or one bucket, and what they said in a form to compare."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from tiering_assets.audit.object_audit import BlockAudit, judge_index
from tiering_assets.audit.record_audit import judge_record
from tiering_assets.records.models import Certificate
from tiering_assets.resources.object_store.store import ObjectStore

TOOL = Path(__file__).parents[2] / "tools" / "check_bucket.py"
SKEW = timedelta(seconds=60)
RANGE_BYTES = 100  # small, so that frames lie across ranges


def load_tool() -> ModuleType:
    """The second checker as a module, from its one file."""
    spec = importlib.util.spec_from_file_location("check_bucket", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()
Said = set[tuple[str, int | None]]


def kinds(findings: Any) -> Said:
    """(kind, ledger) of either checker's findings."""
    rows = [
        f if isinstance(f, dict) else {"kind": f.kind, "ledger_id": f.ledger_id} for f in findings
    ]
    return {(str(f["kind"]), f["ledger_id"]) for f in rows}


def places(findings: Any) -> set[tuple[int | None, int | None]]:
    """(block, entry) of either checker's findings."""
    rows = [f if isinstance(f, dict) else {"block": f.block, "entry": f.entry} for f in findings]
    return {(f["block"], f["entry"]) for f in rows}


def of_record(key: str, body: bytes, stored_at: datetime) -> tuple[Any, Any]:
    ours = judge_record(key, body, stored_at=stored_at, skew=SKEW)[1]
    return ours, tool.check_record(key, body, stored_at, SKEW)[1]


def of_index(certificate: Certificate, proof: dict[str, Any], body: bytes) -> tuple[Any, Any]:
    return judge_index(certificate, body), tool.check_index(proof, body)


def of_block(
    certificate: Certificate, proof: dict[str, Any], number: int, body: bytes
) -> tuple[Any, Any]:
    """`body` is the block, whole or cut off."""
    audit = BlockAudit(certificate, certificate.blocks[number - 1])
    audit.feed(body)
    return audit.finish(), tool.check_block(proof, proof["blocks"][number - 1], [body])


class StoreBucket:
    """What the second checker asks of a bucket, over any of our object stores."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def keys(self, prefix: str) -> Iterator[str]:
        yield from (summary.key for summary in self._objects.list_objects(prefix))

    def head(self, key: str) -> dict[str, Any] | None:
        head = self._objects.head(key)
        if head is None:
            return None
        return {"size": head.size, "etag": head.etag, "version_id": head.version_id}

    def get(self, key: str) -> tuple[bytes, datetime]:
        stored = self._objects.get(key)
        assert stored is not None
        return stored.body, stored.head.last_modified

    def ranges(self, key: str, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, RANGE_BYTES):
            length = min(RANGE_BYTES, end - at)
            yield self._objects.get_range(key, start=at, length=length)


def second_findings(
    objects: ObjectStore, instance: str, *, deep: bool = False, public_keys: tuple[bytes, ...] = ()
) -> list[dict[str, Any]]:
    """All that the second checker finds in a whole bucket."""
    check = tool.Check(
        StoreBucket(objects),
        instance,
        deep=deep,
        skew=SKEW,
        in_flight=timedelta(0),
        public_keys=list(public_keys),
        tell=lambda _line: None,
    )
    check.run(None)
    found: list[dict[str, Any]] = check.findings
    return found


def second_opinion(
    objects: ObjectStore,
    instance: str,
    ledger_ids: list[int] | None = None,
    *,
    share_max: float = 0.1,
) -> tuple[Said, int]:
    """(kind, ledger) of what the second checker finds in a whole bucket, and what it forgets."""
    check = tool.Check(
        StoreBucket(objects),
        instance,
        deep=False,
        skew=SKEW,
        in_flight=timedelta(0),
        public_keys=[],
        tell=lambda _line: None,
        share_max=share_max,
    )
    check.run(ledger_ids)
    return kinds(check.findings), check.counts["forgotten"]
