"""Check what tierkeeper left in a bucket, without tierkeeper: one file, standard library and boto3.

Written from docs/formats.md and docs/records.md, not from the project's code, so that one mistake
cannot hide in both. It reads only. docs/audit.md explains what it checks and every kind of finding.

    python tools/check_bucket.py --bucket tiered --endpoint http://127.0.0.1:9000 --deep
    python tools/check_bucket.py --bucket tiered --instance ID --ledger 4711 --json
    python tools/check_bucket.py --bucket tiered --public-key certificates.pub.pem

Credentials come from where boto3 looks for them (AWS_ACCESS_KEY_ID and so on).

Exit codes: 0 nothing is wrong; 1 findings, one line each; 2 it could not check: wrong arguments, no
or several instances without --instance, or a bucket that cannot be listed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import unquote

KINDS = (
    "record_damaged",
    "schema_unknown",
    "record_misplaced",
    "record_missing",
    "record_in_future",
    "chain_broken",
    "facts_differ",
    "certificate_inconsistent",
    "unsigned",
    "outcome_conflict",
    "release_broken",
    "release_unfinished",
    "released_quarantined",
    "object_missing",
    "object_differs",
    "index_differs",
    "block_differs",
    "page_chain_broken",
    "chain_missing",
    "unreadable",
)
SEGMENT_INDEX_MAGIC = 0x3D1FB0BC
SEGMENT_BLOCK_MAGIC = 0x26A66D32
RECORD_BYTES_MAX = 4 * 1024 * 1024
RANGE_BYTES = 8 * 1024 * 1024
SHARE_MAX = 0.1  # of all attempts, whose ledgers may have gone from their topics at once
SUFFIX = re.compile(r"^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.intent)?\.json$")
HEX64 = re.compile(r"^[0-9a-f]{64}$")
OF_ATTEMPT_KEY = re.compile(
    r"[\w-]+/(0|[1-9][0-9]{0,18})/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\w+)?\.json"
)
PAGES = "day-book/"
PHASES = ("open", "close", "gone", "proof")
PAGE_KEY = re.compile(r"day-book/([0-9]{19})\.json")
NEVER_MISSED = (  # what is replaced, is deleted when it is so no more, or counts for an hour
    "begun-releases",
    "brokers",
    "bucket-proofs",
    "budgets",
    "canaries",
    "claims",
    "damage",
    "day-book",
    "disturbances",
    "failures",
    "holds",
    "loads",
    "pauses",
    "run-batches",
    "scrubs",
    "sweeps",
)

# ----- what a record holds: docs/records.md. A name ending in "?" may be missing or null.

LEDGER = {
    "ledger_id": int,
    "last_entry_id": int,
    "length": int,
    "digest_type": str,
    "ctime_ms": int,
    "czxid": int,
}
BLOCK = {
    "part_number": int,
    "first_entry_id": int,
    "last_entry_id": int,
    "offset": int,
    "block_length": int,
    "payload_bytes": int,
    "sha256": str,
    "entries_sha256": str,
    "messages?": int,
    "publish_min_ms?": int,
    "publish_max_ms?": int,
}
OBJECT = {"key": str, "size": int, "etag": str, "sha256": str, "version_id?": str}
SUITE = {"name": str, "digest": str, "success": bool, "evaluated": int, "successful": int}
WRITER = {"tool_version": str, "host": str, "run_id": str}
ENTRY = {"ledger_id": int, "uid": str, "certificate_sha256": str, "previous": str}
OF_ATTEMPT = {"uid": str, "ml_name": str, "writer": WRITER}
PLACE = {
    "ledger_id": int,
    "first_entry_id": int,
    "last_entry_id": int,
    "bytes_before": int,
    "bytes_upto": int,
}
RANGE = {**PLACE, "bound_by": str, "bound_entry_id": int, "metadata_version": int}
SKIPPED = {
    "from_ledger_id": int,
    "from_entry_id": int,
    "to_ledger_id": int,
    "to_entry_id": int,
    "reason": str,
}
HELD = {**PLACE, "info_hex": str, "blocks": [BLOCK]}
OF_STREAM = {"ml_name": str, "stream": str, "writer": WRITER}
OF_SEGMENT = {**OF_STREAM, "number": int, "ledger_ids": [int], "previous": str}
WORDS = {  # what a field of a stream's record may say
    "begins": ("open-ledger",),
    "trigger": ("size", "time", "manual"),
    "stage": ("copy", "verify"),
    "block_digest": ("entries", "frames"),
}
PROOFS = ("closed", "newest ensemble", "last add confirmed", "broker")
VERSIONS = {"certificate": 2}  # all others have one; older versions are read
FIELDS: dict[str, dict[str, Any]] = {
    "attempt": {
        **OF_ATTEMPT,
        "ledger": LEDGER,
        "ml_czxid": int,
        "bucket": str,
        "data_key": str,
        "index_key": str,
        "block_bytes": int,
        "blocks": int,
        "object_bytes": int,
        "started_at": datetime,
        "previous?": str,
    },
    "certificate": {
        **OF_ATTEMPT,
        "ledger": LEDGER,
        "bucket": str,
        "entries": int,
        "payload_bytes": int,
        "data": OBJECT,
        "index": OBJECT,
        "blocks": [BLOCK],
        "suites": [SUITE],
        "verified_at": datetime,
        "seconds": float,
        "copy_seconds?": float,
        "signature?": {"key_id": str, "value": str},
        "previous": str,
    },
    "quarantine": {
        **OF_ATTEMPT,
        "ledger_id": int,
        "reason": str,
        "found_at": datetime,
        "previous": str,
    },
    "outcome": {
        "ledger_id": int,
        "uid": str,
        "outcome": str,
        "reason": str,
        "decided_at": datetime,
        "writer": WRITER,
        "previous": str,
    },
    "publication": {
        "ml_name": str,
        "ledgers": [ENTRY],
        "node_version": int,
        "node_czxid": int,
        "confirmed_by": str,
        "confirmed_at": datetime,
        "writer": WRITER,
    },
    "release-intent": {
        **OF_ATTEMPT,
        "ledger": LEDGER,
        "certificate_sha256": str,
        "deletion_lag_s": float,
        "published_at": datetime,
        "ml_version": int,
        "ledger_metadata_hex": str,
        "intended_at": datetime,
        "previous": str,
    },
    "release": {
        **OF_ATTEMPT,
        "ledger_id": int,
        "ml_version": int,
        "bytes_released": int,
        "released_at": datetime,
        "previous": str,
    },
    "removal": {
        **OF_ATTEMPT,
        "ledger_id": int,
        "fate": str,
        "node_czxid?": int,
        "seen_at": datetime,
        "seen_again_at": datetime,
        "gone": int,
        "fleet": int,
        "previous": str,
    },
    "forget-plan": {
        "instance": str,
        "bucket": str,
        "planned_at": datetime,
        "ledgers": [{"ledger_id": int, "ml_name": str, "uids": [str]}],
        "fleet": int,
        "writer": WRITER,
    },
    "failure": {
        "ledger_id": int,
        "ml_name?": str,
        "error": str,
        "error_class": str,
        "tries": int,
        "first_at": datetime,
        "last_at": datetime,
        "writer": WRITER,
    },
    "page": {
        "number": int,
        "previous": str,
        "phase": str,
        "command": str,
        "written_at": datetime,
        "writer": WRITER,
        "ledgers?": [int],
        "records?": [{"key": str, "sha256?": str}],
        "for_run?": str,
        "failed?": bool,
    },
    "stream-opened": {
        **OF_STREAM,
        "ml_czxid": int,
        "first_ledger_id": int,
        "first_entry_id": int,
        "begins": str,
        "author": str,
        "opened_at": datetime,
    },
    "stream-closed": {
        **OF_STREAM,
        "segments": int,
        "reason": str,
        "author": str,
        "closed_at": datetime,
        "previous": str,
    },
    "segment-assigned": {
        **OF_STREAM,
        "ml_czxid": int,
        "number": int,
        "ranges": [RANGE],
        "trigger": str,
        "assigned_at": datetime,
        "previous": str,
        "skipped?": SKIPPED,
    },
    "segment-attempt": {
        **OF_SEGMENT,
        "uid": str,
        "bucket": str,
        "data_key": str,
        "index_key": str,
        "block_bytes": int,
        "blocks": int,
        "object_bytes": int,
        "started_at": datetime,
    },
    "segment-failed": {
        **OF_SEGMENT,
        "uid": str,
        "stage": str,
        "error": str,
        "error_class": str,
        "failed_at": datetime,
    },
    "segment-offloaded": {
        **OF_STREAM,
        "ml_czxid": int,
        "number": int,
        "uid": str,
        "bucket": str,
        "entries": int,
        "payload_bytes": int,
        "data": OBJECT,
        "index": OBJECT,
        "ledgers": [HELD],
        "suites": [SUITE],
        "offloaded_at": datetime,
        "seconds": float,
        "assigned_sha256": str,
        "previous": str,
        "block_digest": str,
        "signature?": {"key_id": str, "value": str},
    },
    "segment-given-up": {
        **OF_SEGMENT,
        "reason": str,
        "author": str,
        "given_up_at": datetime,
    },
}
TIME_OF = {
    "attempt": "started_at",
    "certificate": "verified_at",
    "quarantine": "found_at",
    "outcome": "decided_at",
    "publication": "confirmed_at",
    "release-intent": "intended_at",
    "release": "released_at",
    "removal": "seen_again_at",
    "forget-plan": "planned_at",
    "failure": "last_at",
    "page": "written_at",
    "stream-opened": "opened_at",
    "stream-closed": "closed_at",
    "segment-assigned": "assigned_at",
    "segment-attempt": "started_at",
    "segment-failed": "failed_at",
    "segment-offloaded": "offloaded_at",
    "segment-given-up": "given_up_at",
}
FOLDER_OF = {
    "attempts": "attempt",
    "certificates": "certificate",
    "quarantines": "quarantine",
    "outcomes": "outcome",
    "releases": "release",
    "removals": "removal",
    "publications": "publication",
}

Finding = dict[str, Any]
Record = dict[str, Any]


class WrongError(Exception):
    """Bytes that break the format; `entry` is the first one that is not sound."""

    def __init__(self, message: str, entry: int | None = None) -> None:
        super().__init__(message)
        self.entry = entry


def finding(
    kind: str,
    ledger: int | None,
    attempt: str | None,
    key: str,
    what: str,
    expected: object,
    found: object,
    block: int | None = None,
    entry: int | None = None,
) -> Finding:
    if kind not in KINDS:
        raise ValueError(kind)
    return {
        "kind": kind,
        "ledger_id": ledger,
        "uid": attempt,
        "key": key,
        "what": what,
        "expected": str(expected),
        "found": str(found),
        "block": block,
        "entry": entry,
    }


# ----- one record


def canonical(record: Record) -> bytes:
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return (text + "\n").encode("utf-8")


def without(record: Record, *names: str) -> bytes:
    return canonical({k: v for k, v in record.items() if k not in names})


def moment(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError("a time without offset")
    return when


HOLD_KEY = re.compile(r"holds/((0|[1-9][0-9]{0,18})|all|(topics|namespaces)/[0-9a-f]{32})\.json")


def place_of(key: str) -> tuple[str, int | None, str | None] | None:
    """(kind, ledger, attempt) by the key below the instance; None where no record has such a
    key.
    """
    parts = key.split("/")
    if parts[0] == "streams":
        where = stream_place(key)
        return None if where is None else (where["kinds"][0], None, None)
    if len(parts) == 2 and re.match(r"^forget-plans/[0-9a-f]{64}\.json$", key):
        return "forget-plan", None, None
    if re.fullmatch(r"failures/(0|[1-9][0-9]{0,18})\.json", key):
        return "failure", int(parts[1].removesuffix(".json")), None
    if PAGE_KEY.fullmatch(key):
        return "page", None, None
    if len(parts) != 3:
        return None
    folder, middle, name = parts
    kind = FOLDER_OF.get(folder)
    if kind == "publication":
        sound = re.match(r"^[0-9a-f]{32}$", middle) and re.match(r"^[0-9]{10}\.json$", name)
        return (kind, None, None) if sound else None
    match = SUFFIX.match(name)
    if kind is None or match is None or not re.match(r"^(0|[1-9][0-9]{0,18})$", middle):
        return None
    if match[2]:
        return ("release-intent", int(middle), match[1]) if kind == "release" else None
    return kind, int(middle), match[1]


STREAM_KEY = re.compile(
    r"streams/([0-9a-f]{32})/([0-9]{19}\.[0-9]{4})/(?:opened|([0-9]{10})\."
    r"(?:(link|offloaded|given-up)|(attempts|failed)/"
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})))\.json"
)
STREAM_KINDS = {
    "link": ("segment-assigned", "stream-closed"),
    "offloaded": ("segment-offloaded",),
    "given-up": ("segment-given-up",),
    "attempts": ("segment-attempt",),
    "failed": ("segment-failed",),
}
SEGMENTS_MAX = 10**10 - 1


def stream_place(key: str) -> dict[str, Any] | None:
    """What a key below `streams/` says: topic's hash, stream, number of the segment, attempt."""
    match = STREAM_KEY.fullmatch(key)
    if match is None:
        return None
    topic, stream, digits, beside, folder, attempt = match.groups()
    return {
        "topic": topic,
        "stream": stream,
        "number": None if digits is None else SEGMENTS_MAX - int(digits),
        "attempt": attempt,
        "kinds": STREAM_KINDS.get(beside or folder, ("stream-opened",)),
    }


def segment_key(stream: str, number: int, rest: str) -> str:
    """`stream` is `streams/<topic hash>/<stream>`. Keys count down: the newest is listed first."""
    return f"{stream}/{SEGMENTS_MAX - number:010d}{rest}"


def of_stream(key: str, topic: str = "") -> str:
    """What findings say of a record of a stream before anything else."""
    where = stream_place(key)
    if where is None:
        return ""
    whose = f"stream {where['stream']}" + (f" of {topic}" if topic else "")
    number = where["number"]
    return f"{whose}: " if number is None else f"segment {number} of {whose}: "


def page_number(key: str) -> int:
    """Keys count down, so that the newest page is listed first."""
    match = PAGE_KEY.fullmatch(key)
    if match is None:
        raise ValueError(key)
    return 10**19 - 1 - int(match[1])


def page_key(number: int) -> str:
    return f"{PAGES}{10**19 - 1 - number:019d}.json"


def attempt_of(key: str) -> tuple[int | None, str | None]:
    """Ledger and attempt that a record's key names, if it does."""
    match = OF_ATTEMPT_KEY.fullmatch(key)
    return (None, None) if match is None else (int(match[1]), match[2])


def shape_problem(value: object, shape: Any, where: str) -> str | None:
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{where}: not an object"
        for name, inner in shape.items():
            plain = name.rstrip("?")
            if name != plain and value.get(plain) is None:
                continue
            if plain not in value:
                return f"{where}.{plain} is missing"
            problem = shape_problem(value[plain], inner, f"{where}.{plain}")
            if problem:
                return problem
        return None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where}: not a list"
        found = (shape_problem(v, shape[0], f"{where}[{i}]") for i, v in enumerate(value))
        return next((problem for problem in found if problem), None)
    if shape is datetime:
        try:
            moment(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return f"{where}: not a time with offset"
        return None
    wanted = (int, float) if shape is float else (shape,)
    if not isinstance(value, wanted) or (shape is not bool and isinstance(value, bool)):
        return f"{where}: not {shape.__name__}"
    return None


def check_record(
    key: str, body: bytes, stored_at: datetime, skew: timedelta
) -> tuple[Record | None, list[Finding]]:
    """The record with its digest as `_sha256`, unless its bytes are not what its key says."""
    place = place_of(key)
    if place is None:
        said = finding("record_misplaced", None, None, key, "key", "one of a record's", "another")
        return None, [said]
    kind, ledger, attempt = place

    def bad(problem: str, what: str, expected: object, found: object) -> tuple[None, list[Finding]]:
        said = of_stream(key) + what
        return None, [finding(problem, ledger, attempt, key, said, expected, found)]

    try:
        record = json.loads(body.decode("utf-8"))
        if not isinstance(record, dict) or not isinstance(record.get("schema"), str):
            raise ValueError("no JSON object with a schema")  # noqa: TRY004  as json itself says it
        digest = hashlib.sha256(without(record, "digest")).hexdigest()
        again = canonical(record)
    except (ValueError, RecursionError) as error:
        return bad("record_damaged", "bytes", "a JSON record", error)
    if record.get("digest") != digest:
        return bad("record_damaged", "digest", digest, record.get("digest"))
    if again != body:
        return bad("record_damaged", "bytes", "canonical", "other spelling")
    where = stream_place(key)
    for other in () if where is None else where["kinds"]:
        if record["schema"] == f"tierkeeper/{other}/1":
            kind = other
    newest = f"tierkeeper/{kind}/{VERSIONS.get(kind, 1)}"
    if record["schema"] not in (newest, f"tierkeeper/{kind}/1"):
        return bad("schema_unknown", "schema", newest, record["schema"])
    problem = shape_problem(record, FIELDS[kind], kind)
    is_newest = record["schema"] == "tierkeeper/certificate/2"
    if problem is None and is_newest and record.get("block_digest") not in ("entries", "frames"):
        problem = "certificate.block_digest: neither entries nor frames"
    if problem is None and kind == "outcome" and record["outcome"] not in ("publish", "abandon"):
        problem = "outcome.outcome: neither publish nor abandon"
    if problem is None and kind == "page" and record["phase"] not in PHASES:
        problem = "page.phase: none of open, close, gone, proof"
    if problem is None and kind == "page" and record["number"] < 1:
        problem = "page.number: pages are counted from 1"
    if problem is None and where is not None:
        problem = stream_problem(kind, record)
    if problem:
        return bad("record_damaged", "fields", kind, problem)
    if kind == "publication":
        expected: object = key.split("/")[1]
        found: object = hashlib.sha256(record["ml_name"].encode()).hexdigest()[:32]
    elif kind == "forget-plan":
        expected, found = key.split("/")[1], f"{digest}.json"
    elif kind == "page":
        expected, found = page_number(key), record["number"]
    elif where is not None:
        expected, found = meant_by(where), said_of(kind, record, where)
    elif kind == "failure":
        expected, found = ledger, record["ledger_id"]
    else:
        expected = (ledger, attempt)
        found = (record.get("ledger", record)["ledger_id"], record["uid"])
    if expected != found:
        return bad("record_misplaced", "names", expected, found)
    record["_sha256"] = hashlib.sha256(body).hexdigest()
    record["_key"], record["_stored_at"], record["_body"] = key, stored_at, body
    record["_kind"] = kind
    at = moment(record[TIME_OF[kind]])
    if at > stored_at + skew:
        what = of_stream(key) + "time"
        late = finding("record_in_future", ledger, attempt, key, what, stored_at, at)
        return record, [late]
    return record, []


def stream_problem(kind: str, record: Record) -> str | None:
    """What a field of a stream's record says and must not."""
    for name, words in WORDS.items():
        if name in FIELDS[kind] and record[name] not in words:
            return f"{kind}.{name}: none of {', '.join(words)}"
    for one in record["ranges"] if kind == "segment-assigned" else ():
        if one["bound_by"] not in PROOFS:
            return f"{kind}.ranges.bound_by: none of {', '.join(PROOFS)}"
    if "number" in FIELDS[kind] and record["number"] < 1:
        return f"{kind}.number: segments are counted from 1"
    if "uid" in FIELDS[kind] and SUFFIX.match(f"{record['uid']}.json") is None:
        return f"{kind}.uid: not a UUID"
    return None


def meant_by(where: dict[str, Any]) -> tuple[object, ...]:
    """What a record below `streams/` must say by its key."""
    made = int(where["stream"].split(".")[0])
    return where["topic"], where["stream"], made, where["number"], where["attempt"]


def said_of(kind: str, record: Record, where: dict[str, Any]) -> tuple[object, ...]:
    number = record["segments"] + 1 if kind == "stream-closed" else record.get("number")
    return (
        hashlib.sha256(record["ml_name"].encode()).hexdigest()[:32],
        record["stream"],
        record.get("ml_czxid", int(where["stream"].split(".")[0])),
        None if kind == "stream-opened" else number,
        record["uid"] if where["attempt"] else None,
    )


# ----- one certificate by itself


def contradictions(record: Record) -> list[str]:
    facts, blocks = record["ledger"], record["blocks"]
    base = f"{record['uid']}-ledger-{facts['ledger_id']}"
    wanted = [
        ("entries", facts["last_entry_id"] + 1, record["entries"]),
        ("payload bytes", sum(b["payload_bytes"] for b in blocks), record["payload_bytes"]),
        # Recovery may have closed the ledger with a length that counts more than its entries.
        ("ledger length", max(facts["length"], record["payload_bytes"]), facts["length"]),
        ("size", sum(b["block_length"] for b in blocks), record["data"]["size"]),
        ("data key", base, record["data"]["key"]),
        ("index key", base + "-index", record["index"]["key"]),
    ]
    offset = entry = 0
    for number, block in enumerate(blocks, 1):
        count = block["last_entry_id"] - block["first_entry_id"] + 1
        wanted += [
            (f"part number {number}", number, block["part_number"]),
            (f"offset of block {number}", offset, block["offset"]),
            (f"first entry of block {number}", entry, block["first_entry_id"]),
        ]
        room = block["block_length"] - 128 - 12 * count - block["payload_bytes"]
        if count < 1 or room < 0 or block["payload_bytes"] < 0:
            wanted.append((f"room in block {number}", "enough", room))
        offset, entry = block["offset"] + block["block_length"], block["last_entry_id"] + 1
    wanted.append(("last entry", facts["last_entry_id"], entry - 1))
    wanted += [("suite", "passed", s["name"]) for s in record["suites"] if not s["success"]]
    digests = [b["sha256"] for b in blocks]
    named = [*digests, *(b["entries_sha256"] for b in blocks), record["index"]["sha256"]]
    if not all(HEX64.match(one) for one in named):
        wanted.append(("digests", "SHA-256", "something else"))
    else:
        whole = hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
        wanted.append(("data digest", whole, record["data"]["sha256"]))
    return [f"{what}: expected {e}, found {f}" for what, e, f in wanted if e != f]


# ----- the chain of one attempt


def check_attempt(
    ledger: int,
    attempt: str,
    records: dict[str, Record],
    published: list[tuple[Record, Record]],
    unreadable: set[str],
    *,
    store_now: datetime,
    in_flight: timedelta,
    public_keys: list[bytes] | None = None,
) -> list[Finding]:
    """Links and facts. `records` are by kind, `published` pairs of publication and its entry."""
    out: list[Finding] = []

    def say(kind: str, key: str, what: str, expected: object, found: object) -> None:
        out.append(finding(kind, ledger, attempt, key, what, expected, found))

    def same(kind: str, key: str, what: str, expected: object, found: object) -> None:
        if expected != found:
            say(kind, key, what, expected, found)

    def need(folder: str) -> None:
        key = f"{folder}/{ledger}/{attempt}.json"
        if key not in unreadable:
            say("record_missing", key, "record that later ones name", "a record", "none")

    tried, proof = records.get("attempt"), records.get("certificate")
    outcome, intent = records.get("outcome"), records.get("release-intent")
    release, failed = records.get("release"), records.get("quarantine")
    removal = records.get("removal")

    def follows_attempt(record: Record) -> None:
        if tried is None:
            need("attempts")
        before = [r["_sha256"] for r in (tried, proof) if r is not None]
        hidden = any(k.startswith(("attempts/", "certificates/")) for k in unreadable)
        if before and not hidden and record["previous"] not in before:
            say("chain_broken", record["_key"], "previous", before, record["previous"])

    if proof is not None:
        key = proof["_key"]
        for text in contradictions(proof):
            say("certificate_inconsistent", key, "certificate", "no contradiction", text)
        if public_keys and not signed_by(proof, public_keys):
            say("unsigned", key, "signature", "of an accepted key", proof.get("signature"))
        if tried is None:
            need("attempts")
        else:
            same("chain_broken", key, "previous", tried["_sha256"], proof["previous"])
            for name in ("ledger", "ml_name", "bucket"):
                same("facts_differ", key, name, facts(tried[name]), facts(proof[name]))
            same("facts_differ", key, "data key", tried["data_key"], proof["data"]["key"])
            same("facts_differ", key, "index key", tried["index_key"], proof["index"]["key"])
            same("facts_differ", key, "size", tried["object_bytes"], proof["data"]["size"])
            same("facts_differ", key, "blocks", tried["blocks"], len(proof["blocks"]))
    if failed is not None:
        follows_attempt(failed)
        if intent and moment(failed["found_at"]) < moment(intent["intended_at"]):
            at = intent["intended_at"]
            say("released_quarantined", intent["_key"], "release", failed["found_at"], at)
    if outcome is not None:
        if outcome["outcome"] == "abandon":
            follows_attempt(outcome)
        elif proof is None:
            need("certificates")
        else:
            key = outcome["_key"]
            same("chain_broken", key, "previous", proof["_sha256"], outcome["previous"])
    for publication, entry in published:
        key = publication["_key"]
        if outcome is None:
            need("outcomes")
        else:
            same("outcome_conflict", outcome["_key"], key, "publish", outcome["outcome"])
            same("chain_broken", key, "previous", outcome["_sha256"], entry["previous"])
        if proof is not None:
            named = entry["certificate_sha256"]
            same("chain_broken", key, "certificate_sha256", proof["_sha256"], named)
            same("facts_differ", key, "ml_name", proof["ml_name"], publication["ml_name"])
        if tried is not None:
            same("facts_differ", key, "node_czxid", tried["ml_czxid"], publication["node_czxid"])
    if intent is not None:
        key = intent["_key"]
        if outcome is not None:
            same("outcome_conflict", outcome["_key"], key, "publish", outcome["outcome"])
        if proof is None:
            need("certificates")
        else:
            named = intent["certificate_sha256"]
            same("chain_broken", key, "certificate_sha256", proof["_sha256"], named)
            same("facts_differ", key, "ledger", facts(proof["ledger"]), facts(intent["ledger"]))
        if not published:
            topic = hashlib.sha256(intent["ml_name"].encode()).hexdigest()[:32]
            say("record_missing", f"publications/{topic}/", f"for {key}", "a record", "none")
        else:
            before = [entry["previous"] for _p, entry in published]
            if intent["previous"] not in before:
                say("chain_broken", key, "previous", before, intent["previous"])
            times = [moment(p["confirmed_at"]) for p, _entry in published]
            if moment(intent["published_at"]) not in times:
                say("facts_differ", key, "published_at", times, intent["published_at"])
    release_key = f"releases/{ledger}/{attempt}.json"
    if release is None:
        waited = intent is not None and store_now - intent["_stored_at"] >= in_flight
        if waited and release_key not in unreadable:
            say("release_unfinished", release_key, "release record", "one", "none")
    elif not unreadable:
        for text in release_faults(proof, intent, release):
            say("release_broken", release_key, "release", "by the rules", text)
        if intent is not None:
            for name in ("ml_name", "ml_version"):
                same("facts_differ", release_key, name, intent[name], release[name])
            length = intent["ledger"]["length"]
            same("facts_differ", release_key, "bytes", length, release["bytes_released"])
    if removal is not None:
        key = removal["_key"]
        if outcome is None:
            need("outcomes")
        else:
            same("chain_broken", key, "previous", outcome["_sha256"], removal["previous"])
        if proof is not None:
            same("facts_differ", key, "ml_name", proof["ml_name"], removal["ml_name"])
        fates = {fate_of(removal, publication) for publication, _entry in published}
        if removal["fate"] not in fates:
            say("facts_differ", key, "fate", sorted(fates) or "of a publication", removal["fate"])
        if moment(removal["seen_again_at"]) < moment(removal["seen_at"]):
            say("facts_differ", key, "seen again", removal["seen_at"], removal["seen_again_at"])
    return out


def fate_of(removal: Record, publication: Record) -> str:
    """What became of a ledger whose topic's node is another one now, the same, or gone."""
    now = removal.get("node_czxid")
    if now is None:
        return "topic deleted"
    return "trimmed" if now == publication["node_czxid"] else "topic deleted and made again"


def why_missed(
    proof: Record,
    removal: Record | None,
    outcome: Record | None,
    published: list[Any],
    share_max: float,
) -> str | None:
    """Why objects that are not there are missed; None where they went with their ledger."""
    if removal is None:
        return "no record says that its ledger was removed from its topic"
    fates = {fate_of(removal, publication) for publication, _entry in published}
    sound = (
        outcome is not None
        and removal["previous"] == outcome["_sha256"]
        and removal["fate"] in fates
        and removal["ml_name"] == proof["ml_name"]
        and moment(removal["seen_at"]) <= moment(removal["seen_again_at"])
    )
    if not sound:
        return f"{removal['_key']} does not fit the other records"
    gone, fleet = removal["gone"], removal["fleet"]
    if gone > 100 and gone > share_max * fleet:
        return f"{removal['_key']} was written for {gone} of {fleet} attempts at once"
    return None


def facts(value: object) -> object:
    """A ledger's facts without fields that a newer writer added."""
    return {name: value[name] for name in LEDGER} if isinstance(value, dict) else value


def release_faults(proof: Record | None, intent: Record | None, release: Record) -> Iterator[str]:
    if intent is None:
        yield "the bookie copy is gone, but no intent was written before"
        return
    if proof is None:
        yield "there is no certificate of this attempt"
    elif facts(proof["ledger"]) != facts(intent["ledger"]):
        yield "another ledger was released than certified"
    if intent["certificate_sha256"] != (proof or {}).get("_sha256"):
        yield "the intent names another certificate"
    if release["previous"] != intent["_sha256"]:
        yield "the release record names another intent"
    intended = moment(intent["intended_at"])
    if moment(release["released_at"]) < intended:
        yield "released before its intent"
    waited = (intended - moment(intent["published_at"])).total_seconds()
    if waited <= intent["deletion_lag_s"]:
        yield f"released {waited:.0f} s after publication, the lag is {intent['deletion_lag_s']} s"


def check_ledger(certificates: list[Record]) -> list[Finding]:
    out: list[Finding] = []
    first: dict[int, object] = {}
    for record in sorted(certificates, key=lambda one: str(one["_key"])):
        have = facts(record["ledger"])
        known = first.setdefault(record["ledger"]["czxid"], have)
        if known != have:
            ledger, attempt = record["ledger"]["ledger_id"], record["uid"]
            said = finding("facts_differ", ledger, attempt, record["_key"], "ledger", known, have)
            out.append(said)
    return out


# ----- a stream: its segments from the newest to the first


def topic_of(ml_name: str) -> str:
    parts = ml_name.split("/")
    return f"{parts[2]}://{parts[0]}/{parts[1]}/{unquote(parts[3])}" if len(parts) == 4 else ml_name


def start_of(one: Record) -> tuple[int, int, int]:
    return one["ledger_id"], one["first_entry_id"], one["bytes_before"]


def end_of(link: Record) -> tuple[int, int, int] | None:
    """Ledger, next entry and payload bytes before it; None where a record does not say."""
    if link["_kind"] == "stream-opened":
        return link["first_ledger_id"], link["first_entry_id"], 0
    last = link["ranges"][-1] if link.get("ranges") else None
    return (
        None if last is None else (last["ledger_id"], last["last_entry_id"] + 1, last["bytes_upto"])
    )


class Stream:
    """Told of every segment that is listed, then of the opening. `out` has what is wrong.

    What cannot be read is a finding by itself, and nothing that hangs on it is judged.
    """

    def __init__(self, base: str) -> None:
        self.base, self.topic = base, ""
        self.newer: tuple[int, Record | None] | None = None
        self.out: list[Finding] = []

    def say(
        self, kind: str, ledger: int | None, key: str, what: str, expected: object, found: object
    ) -> None:
        said = of_stream(key, self.topic) + what
        self.out.append(finding(kind, ledger, None, key, said, expected, found))

    def same(
        self, kind: str, ledger: int | None, key: str, what: str, expected: object, found: object
    ) -> None:
        if expected != found:
            self.say(kind, ledger, key, what, expected, found)

    def lost(self, ledger: int | None, key: str) -> None:
        self.say("record_missing", ledger, key, "record that others need", "a record", "none")

    def segment(self, number: int, listed: set[str], records: list[Record]) -> Record | None:
        """Its certificate, if there is a readable one."""
        for record in records:
            self.topic = self.topic or topic_of(record["ml_name"])
        kinds = {r["_kind"]: r for r in records}
        link = kinds.get("segment-assigned") or kinds.get("stream-closed")
        proof, given_up = kinds.get("segment-offloaded"), kinds.get("segment-given-up")
        ranges = (link or {}).get("ranges") or (proof or {}).get("ledgers") or [{}]
        ledger = ranges[0].get("ledger_id")
        link_key = segment_key(self.base, number, ".link.json")
        if link_key not in listed:
            self.lost(ledger, link_key)
        self.before_newer(number, listed, link, ledger)
        if link is not None and link["_kind"] == "stream-closed":
            if len(listed) > 1:
                have = sorted(listed - {link_key})
                self.say("chain_broken", ledger, link_key, "beside a stream's end", "none", have)
        elif link is not None:
            self.within(link)
        self.tries(number, listed, records, link, ledger)
        if link is not None and link.get("ranges"):
            for one in (proof, given_up):
                if one is not None:
                    self.of_assignment(link, one, ledger)
        if proof is not None:
            for text in segment_contradictions(proof):
                said = ("certificate", "no contradiction", text)
                self.say("certificate_inconsistent", ledger, proof["_key"], *said)
        self.newer = (number, link)
        return proof

    def end(self, opened: Record | None, listed: bool) -> None:
        self.gap(0)
        key = f"{self.base}/opened.json"
        if opened is not None:
            self.topic = self.topic or topic_of(opened["ml_name"])
        if not listed:
            self.lost(None, key)
        if opened is not None and self.newer is not None and self.newer[0] == 1:
            self.follows(opened, self.newer[1])

    def gap(self, number: int) -> None:
        if self.newer is not None and self.newer[0] > number + 1:
            self.lost(None, segment_key(self.base, self.newer[0] - 1, ".link.json"))

    def before_newer(
        self, number: int, listed: set[str], link: Record | None, ledger: int | None
    ) -> None:
        """What a segment must be so that there may be another behind it."""
        self.gap(number)
        if self.newer is None or self.newer[0] != number + 1:
            return
        newer = self.newer[1]
        done = [segment_key(self.base, number, f".{n}.json") for n in ("offloaded", "given-up")]
        if link is not None and link["_kind"] == "stream-closed":
            first = (newer or {}).get("ranges") or [{}]
            key = (newer or link)["_key"]
            self.say(
                "chain_broken", first[0].get("ledger_id"), key, "behind the end", "none", "one"
            )
            return
        if not listed.intersection(done):
            self.lost(ledger, done[0])
        if link is not None:
            self.follows(link, newer)

    def follows(self, link: Record, newer: Record | None) -> None:
        """The next link names this one, and begins where this one ends."""
        if newer is None:
            return
        first = (newer.get("ranges") or [{}])[0]
        ledger, key = first.get("ledger_id"), newer["_key"]
        self.same("chain_broken", ledger, key, "previous", link["_sha256"], newer["previous"])
        at = end_of(link)
        if at is None or not first:
            return
        start, skipped = start_of(first), newer.get("skipped")
        if skipped is None:
            fresh = start[0] > at[0] and start[1:] == (0, 0)
            if start != at and not fresh:
                self.say("facts_differ", ledger, key, "first entry", at, start)
            return
        said = tuple(skipped[n] for n in SKIPPED if n != "reason")
        self.same("facts_differ", ledger, key, "skipped", (*at[:2], *start[:2]), said)
        if start[:2] <= at[:2] or (start[0] == at[0] and start[2] < at[2]):
            self.say("facts_differ", ledger, key, "first entry behind what was skipped", at, start)

    def within(self, link: Record) -> None:
        """The ranges of one segment."""
        before, key = None, link["_key"]
        if not link["ranges"]:
            self.say("facts_differ", None, key, "ranges", "at least one", "none")
        for one in link["ranges"]:
            ledger = one["ledger_id"]
            ids = [0, one["first_entry_id"], one["last_entry_id"], one["bound_entry_id"]]
            lengths = [0, one["bytes_before"], one["bytes_upto"]]
            for what, numbers in (("entries", ids), ("payload bytes", lengths)):
                self.same("facts_differ", ledger, key, what, sorted(numbers), numbers)
            begins = start_of(one)[1:]
            if begins[0] == 0 and begins[1] != 0:
                self.say("facts_differ", ledger, key, "bytes before entry 0", 0, begins[1])
            if before is not None and (begins != (0, 0) or ledger <= before):
                said = ("a later ledger's first entry", f"ledger above {before}", one)
                self.say("facts_differ", ledger, key, *said)
            before = ledger

    def tries(
        self,
        number: int,
        listed: set[str],
        records: list[Record],
        link: Record | None,
        ledger: int | None,
    ) -> None:
        """Attempts, and what says of one how it ended."""
        tried = {r["uid"]: r for r in records if r["_kind"] == "segment-attempt"}
        if link is not None and link.get("ranges"):
            for made in tried.values():
                self.of_assignment(link, made, ledger)
        for record in records:
            if record["_kind"] not in ("segment-failed", "segment-offloaded"):
                continue
            one, key = tried.get(record["uid"]), record["_key"]
            if one is None:
                its = segment_key(self.base, number, f".attempts/{record['uid']}.json")
                if its not in listed:
                    self.lost(ledger, its)
                continue
            self.same("chain_broken", ledger, key, "previous", one["_sha256"], record["previous"])
            pairs = [("ledger_ids", one["ledger_ids"], record.get("ledger_ids"))]
            if record["_kind"] == "segment-offloaded":
                count = sum(len(held["blocks"]) for held in record["ledgers"])
                pairs = [
                    ("bucket", one["bucket"], record["bucket"]),
                    ("data key", one["data_key"], record["data"]["key"]),
                    ("index key", one["index_key"], record["index"]["key"]),
                    ("size", one["object_bytes"], record["data"]["size"]),
                    ("blocks", one["blocks"], count),
                ]
            for what, expected, found in pairs:
                self.same("facts_differ", ledger, key, what, expected, found)

    def of_assignment(self, link: Record, record: Record, ledger: int | None) -> None:
        """What names the assignment names this one, and is of its ledgers."""
        key, named, plan = record["_key"], "previous", link["ranges"]
        if record["_kind"] == "segment-offloaded":
            named = "assigned_sha256"
            want, have = ([[r[n] for n in PLACE] for r in of] for of in (plan, record["ledgers"]))
            self.same("facts_differ", ledger, key, "ranges", want, have)
            self.same("facts_differ", ledger, key, "ml_czxid", link["ml_czxid"], record["ml_czxid"])
        else:
            ids = [r["ledger_id"] for r in plan]
            self.same("facts_differ", ledger, key, "ledger_ids", ids, record["ledger_ids"])
        self.same("chain_broken", ledger, key, named, link["_sha256"], record[named])


def segment_contradictions(proof: Record) -> list[str]:
    uid, held = proof["uid"], proof["ledgers"]
    blocks = [block for one in held for block in one["blocks"]]
    wanted: list[tuple[str, object, object]] = [
        ("data key", uid, proof["data"]["key"]),
        ("index key", uid + "-index", proof["index"]["key"]),
        ("payload bytes", sum(b["payload_bytes"] for b in blocks), proof["payload_bytes"]),
        (
            "entries",
            sum(b["last_entry_id"] - b["first_entry_id"] + 1 for b in blocks),
            proof["entries"],
        ),
        ("ledgers", True, bool(held)),
        ("suites", True, bool(proof["suites"])),
    ]
    wanted += [("suite", "passed", s["name"]) for s in proof["suites"] if not s["success"]]
    offset, number = 0, 0
    for one in held:
        ledger, entry, payload = one["ledger_id"], one["first_entry_id"], one["bytes_before"]
        wanted.append((f"id of ledger {ledger}", True, 0 <= ledger < 2**63))
        for block in one["blocks"]:
            number += 1
            count = block["last_entry_id"] - entry + 1
            at = (number, offset, entry)
            found = (block["part_number"], block["offset"], block["first_entry_id"])
            wanted.append((f"part, offset, first entry of block {number}", at, found))
            room = block["block_length"] - 128 - 12 * count - block["payload_bytes"]
            sound = count > 0 and room >= 0 and block["payload_bytes"] >= 0
            wanted.append((f"room in block {number}", True, sound and 0 <= entry < 2**63))
            offset, entry = offset + block["block_length"], block["last_entry_id"] + 1
            payload += block["payload_bytes"]
        wanted.append((f"last entry of ledger {ledger}", one["last_entry_id"], entry - 1))
        wanted.append((f"payload bytes of ledger {ledger}", one["bytes_upto"], payload))
    wanted.append(("size", offset, proof["data"]["size"]))
    digests = [b["sha256"] for b in blocks]
    named = [*digests, *(b["entries_sha256"] for b in blocks), proof["index"]["sha256"]]
    if not all(HEX64.match(one) for one in named):
        wanted.append(("digests", "SHA-256", "something else"))
    else:
        whole = hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
        wanted.append(("data digest", whole, proof["data"]["sha256"]))
    return [f"{what}: expected {e}, found {f}" for what, e, f in wanted if e != f]


# ----- Ed25519 (RFC 8032), only to verify

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493
Point = tuple[int, int, int, int]


def add(a: Point, b: Point) -> Point:
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    w, x, y, z = f - e, h - g, h + g, f + e
    return w * x % P, y * z % P, x * y % P, w * z % P


def times(scalar: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def unpack_point(raw: bytes) -> Point:
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x2 = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - x2) % P or (x == 0 and sign):
        raise ValueError("not a point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = unpack_point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verifies(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        key, r = unpack_point(public), unpack_point(signature[:32])
    except ValueError:
        return False
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little")
    left, right = times(s, BASE), add(r, times(h % ORDER, key))
    return not (
        (left[0] * right[2] - right[0] * left[2]) % P
        or (left[1] * right[2] - right[1] * left[2]) % P
    )


def public_key_of(pem: str) -> bytes:
    """The 32 bytes of an Ed25519 key in a PEM file (RFC 8410)."""
    lines = [x.strip() for x in pem.strip().splitlines()]
    raw = base64.b64decode("".join(x for x in lines if not x.startswith("-")))
    if len(raw) != 44 or raw[:12] != bytes.fromhex("302a300506032b6570032100"):
        raise ValueError("not an Ed25519 public key in PEM")
    return raw[12:]


def signed_by(record: Record, public_keys: list[bytes]) -> bool:
    signature = record.get("signature")
    if not isinstance(signature, dict):
        return False
    message = without(json.loads(record["_body"]), "signature", "digest")
    for public in public_keys:
        if signature.get("key_id") == hashlib.sha256(public).hexdigest()[:16]:
            try:
                value = base64.b64decode(str(signature.get("value")), validate=True)
            except ValueError:
                return False
            return verifies(public, message, value)
    return False


# ----- the two objects: docs/formats.md


def about_of(proof: Record, ledger: int | None = None) -> tuple[int | None, str | None]:
    """Ledger and attempt; of a segment a ledger alone, its first one if none is given."""
    if "ledgers" not in proof:
        return proof["ledger"]["ledger_id"], proof["uid"]
    first = proof["ledgers"][0]["ledger_id"] if proof["ledgers"] else None
    return (first if ledger is None else ledger), None


def check_head(
    proof: Record, part: str, head: dict[str, Any] | None, missed: str | None
) -> list[Finding]:
    want, about, of = proof[part], about_of(proof), proof.get("_of", "")
    if head is None:
        said = (want["key"], of + "object", want["size"], f"nothing; {missed}")
        return [] if missed is None else [finding("object_missing", *about, *said)]
    return [
        finding("object_differs", *about, want["key"], of + name, want.get(name), head[name])
        for name in ("size", "etag", "version_id")
        if want.get(name) != head[name]
    ]


def check_index(proof: Record, body: bytes) -> list[Finding]:
    about = (proof["ledger"]["ledger_id"], proof["uid"], proof["index"]["key"])
    digest = hashlib.sha256(body).hexdigest()
    out = []
    if digest != proof["index"]["sha256"]:
        want = proof["index"]["sha256"]
        out.append(finding("index_differs", *about, "SHA-256", want, digest))
    try:
        length, rows = read_index(body)
    except WrongError as error:
        return [*out, finding("index_differs", *about, "index", "one that decodes", error)]
    if length != proof["data"]["size"]:
        size = proof["data"]["size"]
        out.append(finding("index_differs", *about, "data object length", size, length))
    want_rows = [(b["first_entry_id"], b["part_number"], b["offset"]) for b in proof["blocks"]]
    if len(rows) != len(want_rows):
        out.append(finding("index_differs", *about, "blocks", len(want_rows), len(rows)))
    for number, (expected, found) in enumerate(zip(want_rows, rows, strict=False), 1):
        if expected != found:
            said = "first entry, part number, offset"
            out.append(finding("index_differs", *about, said, expected, found, number))
    return out


def read_index(body: bytes) -> tuple[int, list[tuple[int, int, int]]]:
    if len(body) < 32:
        raise WrongError(f"{len(body)} bytes, at least 32")
    magic, size, length, header, count, extra = struct.unpack_from(">IIqqII", body)
    if (magic, size, header) != (0xDE47DE47, len(body), 128):
        raise WrongError(
            f"magic {magic:#x}, length {size} of {len(body)}, data header length {header}"
        )
    if 32 + extra + 20 * count != len(body):
        raise WrongError(f"{count} blocks and {extra} bytes of metadata in {len(body)} bytes")
    return length, [tuple(row) for row in struct.iter_unpack(">qiq", body[32 + extra :])]


def check_segment_index(proof: Record, body: bytes) -> list[Finding]:
    key, digest, of = proof["index"]["key"], hashlib.sha256(body).hexdigest(), proof["_of"]
    rows: list[tuple[int | None, str, object, object, int | None]] = [
        (None, "SHA-256", proof["index"]["sha256"], digest, None)
    ]
    try:
        length, groups = read_segment_index(body)
        ids = [one["ledger_id"] for one in proof["ledgers"]]
        rows.append((None, "data object length", proof["data"]["size"], length, None))
        rows.append((None, "ledgers", ids, [ledger for ledger, _info, _rows in groups], None))
        for one, (_ledger, info, places) in zip(proof["ledgers"], groups, strict=False):
            ledger = one["ledger_id"]
            rows.append((ledger, "LedgerInfo", one["info_hex"], info.hex(), None))
            held = {1: ledger, 2: one["last_entry_id"] + 1, 3: one["bytes_upto"]}
            said = read_varints(info)
            rows.append((ledger, "LedgerInfo", held, {n: said.get(n) for n in held}, None))
            rows.append((ledger, "blocks", len(one["blocks"]), len(places), None))
            for block, found in zip(one["blocks"], places, strict=False):
                want = (block["first_entry_id"], block["part_number"], block["offset"])
                said_of_it = "first entry, part number, offset"
                rows.append((ledger, said_of_it, want, found, block["part_number"]))
    except WrongError as error:
        rows.append((None, "index", "one that decodes", error, None))
    return [
        finding("index_differs", *about_of(proof, ledger), key, of + what, want, have, block)
        for ledger, what, want, have, block in rows
        if want != have
    ]


Group = tuple[int, bytes, list[tuple[int, int, int]]]


def read_segment_index(body: bytes) -> tuple[int, list[Group]]:
    """Length of the data object; of each ledger its id, LedgerInfo and rows (PIP-76)."""
    if len(body) < 24:
        raise WrongError(f"{len(body)} bytes, at least 24")
    magic, size, length, header = struct.unpack_from(">Iiqq", body)
    if (magic, size, header) != (SEGMENT_INDEX_MAGIC, len(body), 128):
        raise WrongError(
            f"magic {magic:#x}, length {size} of {len(body)}, data header length {header}"
        )
    at, groups = 24, []
    while at < len(body):
        if at + 16 > len(body):
            raise WrongError(f"ends in a group at byte {at}")
        ledger, count, extra = struct.unpack_from(">qii", body, at)
        end = at + 16 + extra + 20 * count
        if count < 1 or extra < 0 or end > len(body):
            raise WrongError(f"group at byte {at}: {count} blocks, {extra} bytes of LedgerInfo")
        info, rows = body[at + 16 : at + 16 + extra], body[at + 16 + extra : end]
        groups.append((ledger, info, [tuple(row) for row in struct.iter_unpack(">qiq", rows)]))
        at = end
    return length, groups


def read_varints(message: bytes) -> dict[int, int]:
    """Numbers of a protobuf message that has no other fields, as LedgerInfo has here."""
    at, numbers = 0, []
    while at < len(message):
        value = shift = 0
        while True:
            if at >= len(message) or shift > 63:
                raise WrongError(f"LedgerInfo: no number at byte {at}")
            value |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 0x80:
                break
        numbers.append(value)
    if len(numbers) % 2 or any(tag & 7 for tag in numbers[::2]):
        raise WrongError("LedgerInfo: other fields than numbers")
    return {tag >> 3: value for tag, value in zip(numbers[::2], numbers[1::2], strict=True)}


def walk_block(
    block: Record, chunks: Iterable[bytes], kind: str, ledger: int | None = None
) -> tuple[str, str, int]:
    """SHA-256 of the block, digest of its entries, payload bytes. Wrong says where it breaks.

    The digest is over header and frames, or (`kind` "entries") over ids, lengths and payloads. At
    most one range and one entry are in memory. A segment's block has its `ledger` in the header.
    """
    whole, entries = hashlib.sha256(), hashlib.sha256()
    source, buffer, at = iter(chunks), bytearray(), 0
    end, first, last = block["block_length"], block["first_entry_id"], block["last_entry_id"]

    def take(count: int, entry: int | None) -> bytes:
        nonlocal at
        while len(buffer) < count:
            chunk = next(source, None)
            if chunk is None:
                raise WrongError(f"ends at byte {at + len(buffer)} of {end}", entry)
            whole.update(chunk)
            buffer.extend(chunk)
        taken = bytes(buffer[:count])
        del buffer[:count]
        at += count
        return taken

    head = take(128, first)
    expected = struct.pack(">Iqqq", 0xFBDBABCB, 128, end, first)
    if ledger is not None:
        expected = struct.pack(">Iqqqq", SEGMENT_BLOCK_MAGIC, 128, end, first, ledger)
    expected = expected.ljust(128, b"\0")
    if head != expected:
        wrong = next(i for i in range(128) if head[i] != expected[i])
        raise WrongError(
            f"header: byte {wrong}: {head[wrong]:#04x} for {expected[wrong]:#04x}", first
        )
    if kind == "frames":
        entries.update(head)
    payload_bytes = 0
    for entry in range(first, last + 1):
        frame = take(12, entry)
        length, found = struct.unpack(">iq", frame)
        if found != entry or not 0 <= length <= end - at:
            raise WrongError(f"frame at byte {at - 12}: entry {found}, length {length}", entry)
        payload = take(length, entry)
        entries.update((frame if kind == "frames" else struct.pack(">qi", entry, length)) + payload)
        payload_bytes += length
    padding_at = at
    while at < end:
        found_padding = take(min(end - at, 65536), last)
        phase = (at - len(found_padding) - padding_at) % 4
        pattern = (b"\xfe\xdc\xde\xad" * (len(found_padding) // 4 + 2))[phase:]
        if found_padding != pattern[: len(found_padding)]:
            raise WrongError(f"padding before byte {at}", last)
    if buffer or next(source, None) is not None:
        raise WrongError(f"bytes after byte {end}", last)
    return whole.hexdigest(), entries.hexdigest(), payload_bytes


def check_block(
    proof: Record, block: Record, chunks: Iterable[bytes], ledger: int | None = None
) -> list[Finding]:
    """`ledger` is that of a segment's block."""
    about = (*about_of(proof, ledger), proof["data"]["key"])
    number, of = block["part_number"], proof.get("_of", "")
    named = ledger is not None or proof["schema"].endswith("/2")
    try:
        kind = proof["block_digest"] if named else "entries"
        digest, entries, payload_bytes = walk_block(block, chunks, kind, ledger)
    except WrongError as error:
        said = (error, number, error.entry)
        return [finding("block_differs", *about, of + "block", "one that decodes", *said)]
    return [
        finding("block_differs", *about, of + what, want, have, number)
        for what, want, have in (
            ("SHA-256", block["sha256"], digest),
            ("entries digest", block["entries_sha256"], entries),
            ("payload bytes", block["payload_bytes"], payload_bytes),
        )
        if want != have
    ]


# ----- the day book: pages from the newest to the first, and what they name


def check_pages(pages: list[tuple[int, str | None, str | None]]) -> list[Finding]:
    """Gaps and links. Each page is (number, SHA-256, previous), newest first; both are None where
    it cannot be read, which is a finding by itself.
    """
    out: list[Finding] = []

    def say(number: int, what: str, expected: object, found: object) -> None:
        out.append(
            finding("page_chain_broken", None, None, page_key(number), what, expected, found)
        )

    oldest = [(0, "", None)] if pages and pages[-1][0] > 0 else []
    for (number, _digest, previous), (before, digest, _) in zip(
        pages, [*pages[1:], *oldest], strict=False
    ):
        if before != number - 1:
            lost = f"pages {before + 1} to {number - 1} of the day book"
            say(number - 1, lost, previous or "a page", "nothing")
        elif previous is not None and digest is not None and previous != digest:
            say(number, f"previous, SHA-256 of page {before}", digest or "nothing", previous)
    return out


class Named:
    """What close pages name and must be there; `ledgers` are those that are asked for."""

    def __init__(self, ledgers: list[int] | None) -> None:
        self.ledgers = None if ledgers is None else {*ledgers}
        self.missing: dict[str, tuple[int, str | None]] = {}  # page and digest
        self.gone: set[str] = set()
        self.changed: dict[str, tuple[int, str, str]] = {}

    def asked(self, key: str) -> bool:
        return self.ledgers is None or attempt_of(key)[0] in self.ledgers

    def take(self, page: Record, *, gone_only: bool = False) -> None:
        """Newest first, so that the digest counts that was named first."""
        for one in page.get("records") or ():
            key, lasts = one["key"], one["key"].split("/")[0] not in NEVER_MISSED
            if not self.asked(key):
                continue
            if page["phase"] == "gone":
                self.gone.add(key)
            elif page["phase"] in ("close", "proof") and lasts and not gone_only:
                known = self.missing.get(key, (0, None))[1]
                self.missing[key] = (page["number"], one.get("sha256") or known)

    def saw(self, key: str, digest: str | None = None) -> None:
        number, expected = self.missing.pop(key, (0, None))
        if expected is not None and digest is not None and digest != expected:
            self.changed[key] = (number, expected, digest)

    def left(self) -> list[str]:
        return [key for key in self.missing if key not in self.gone]

    def findings(self, forgotten: set[tuple[int, str]]) -> list[Finding]:
        rows: list[tuple[str, int, str | None, str]] = [
            (key, *self.missing[key], "nothing") for key in self.left()
        ]
        rows += [(key, *row) for key, row in self.changed.items() if key not in self.gone]
        out = []
        for key, number, expected, found in sorted(rows):
            ledger, attempt = attempt_of(key)
            if ledger is None or attempt is None or (ledger, attempt) not in forgotten:
                what = f"named by page {number} of the day book, {page_key(number)}"
                said = (key, what, expected or "a record", found)
                out.append(finding("chain_missing", ledger, attempt, *said))
        return out


# ----- the bucket


class Bucket:
    """The few requests that the check makes. Errors of one request are findings of one key."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name

    def keys(self, prefix: str) -> Iterator[str]:
        pages = self.client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.name, Prefix=prefix):
            yield from (item["Key"] for item in page.get("Contents", ()))

    def folders(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2")
        found = pages.paginate(Bucket=self.name, Prefix=prefix, Delimiter="/")
        return [p["Prefix"] for page in found for p in page.get("CommonPrefixes", ())]

    def head(self, key: str) -> dict[str, Any] | None:
        from botocore.exceptions import ClientError

        try:
            said = self.client.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                return None
            raise
        version = said.get("VersionId")
        return {
            "size": said["ContentLength"],
            "etag": said["ETag"],
            "version_id": None if version in (None, "null") else version,
            "stored_at": said["LastModified"],
        }

    def get(self, key: str) -> tuple[bytes, datetime]:
        said = self.client.get_object(Bucket=self.name, Key=key)
        return said["Body"].read(), said["LastModified"]

    def ranges(self, key: str, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, RANGE_BYTES):
            asked = f"bytes={at}-{min(at + RANGE_BYTES, end) - 1}"
            yield self.client.get_object(Bucket=self.name, Key=key, Range=asked)["Body"].read()


class Check:
    """One run over one instance."""

    def __init__(
        self,
        bucket: Bucket,
        instance: str,
        *,
        deep: bool,
        skew: timedelta,
        in_flight: timedelta,
        public_keys: list[bytes],
        tell: Callable[[str], None],
        share_max: float = SHARE_MAX,
    ) -> None:
        self.bucket, self.prefix = bucket, f"tierkeeper/{instance}/"
        self.deep, self.skew, self.in_flight = deep, skew, in_flight
        self.public_keys, self.tell, self.share_max = public_keys, tell, share_max
        self.findings: list[Finding] = []
        self.published: dict[tuple[int, str], list[tuple[Record, Record]]] = {}
        self.forgotten: set[tuple[int, str]] = set()
        self.named = Named(None)
        self.newest_page = 0
        self.counts = {
            "ledgers": 0,
            "attempts": 0,
            "forgotten": 0,
            "removed": 0,
            "segments": 0,
            "records": 0,
            "objects": 0,
            "bytes_read": 0,
        }

    def run(self, ledgers: list[int] | None) -> None:
        found: dict[int, dict[str, list[str]]] = {i: {} for i in ledgers or ()}
        topics = set()
        # A record is written before the page that names it: pages first, so that none is missed.
        self.pages(ledgers)
        for folder in FOLDER_OF:
            if folder == "publications":
                continue
            under = [f"{folder}/"] if ledgers is None else [f"{folder}/{i}/" for i in ledgers]
            for prefix in under:
                for full in self.bucket.keys(self.prefix + prefix):
                    key = full[len(self.prefix) :]
                    place = place_of(key)
                    if place is None or place[1] is None or place[2] is None:
                        self.read(key)
                    else:
                        found.setdefault(place[1], {}).setdefault(place[2], []).append(key)
        for full in self.bucket.keys(self.prefix + "forget-plans/"):
            plan = self.read(full[len(self.prefix) :])
            for gone in () if plan is None else plan["ledgers"]:
                self.forgotten.update((gone["ledger_id"], attempt) for attempt in gone["uids"])
        for name in [""] if ledgers is None else [f"{i}.json" for i in ledgers]:
            for full in self.bucket.keys(f"{self.prefix}failures/{name}"):
                self.read(full[len(self.prefix) :])  # of no chain: it proves nothing
        for full in self.bucket.keys(self.prefix + "holds/") if ledgers is None else ():
            key = full[len(self.prefix) :]
            if HOLD_KEY.fullmatch(key) is None:
                said = ("key", "one of a record's", "another: possibly meant as a hold")
                self.findings.append(finding("record_misplaced", None, None, key, *said))
        known = [ledger for ledger, _attempt in self.forgotten]
        self.counts["forgotten"] = sum(ledgers is None or i in ledgers for i in known)
        for ledger in (i for i, made in found.items() if not made and i not in known):
            said = ("records of this ledger", "some", "none")
            one = finding("record_missing", ledger, None, f"attempts/{ledger}/", *said)
            self.findings.append(one)
        reads: dict[str, Record | None] = {}
        if ledgers is None:
            topics.add("publications/")
        else:
            for key in (k for a in found.values() for ks in a.values() for k in ks):
                record = reads[key] = self.read(key)
                if record is not None and "ml_name" in record:
                    digest = hashlib.sha256(record["ml_name"].encode()).hexdigest()[:32]
                    topics.add(f"publications/{digest}/")
        for prefix in sorted(topics):
            for full in self.bucket.keys(self.prefix + prefix):
                publication = self.read(full[len(self.prefix) :])
                for entry in () if publication is None else publication["ledgers"]:
                    pair = (entry["ledger_id"], entry["uid"])
                    self.published.setdefault(pair, []).append((publication or {}, entry))
        for ledger, attempt in self.published:
            if ledgers is None or ledger in found:
                found.setdefault(ledger, {}).setdefault(attempt, [])
        now = datetime.now(UTC)
        for ledger, attempts in sorted(found.items()):
            proofs = []
            for attempt, record_keys in sorted(attempts.items()):
                if (ledger, attempt) in self.forgotten:
                    continue
                records, unreadable = {}, set()
                for key in record_keys:
                    record = reads[key] if key in reads else self.read(key)
                    if record is None:
                        unreadable.add(key)
                    else:
                        records[(place_of(key) or ("",))[0]] = record
                published = self.published.get((ledger, attempt), [])
                self.findings += check_attempt(
                    ledger,
                    attempt,
                    records,
                    published,
                    unreadable,
                    store_now=now,
                    in_flight=self.in_flight,
                    public_keys=self.public_keys,
                )
                proof, outcome = records.get("certificate"), records.get("outcome")
                abandoned = outcome is not None and outcome["outcome"] == "abandon"
                if proof is not None:
                    proofs.append(proof)
                    if not abandoned or published or "release-intent" in records:
                        removal = records.get("removal")
                        missed = why_missed(proof, removal, outcome, published, self.share_max)
                        self.counts["removed"] += missed is None
                        self.objects(proof, missed)
                self.counts["attempts"] += 1
            self.findings += check_ledger(proofs)
            self.counts["ledgers"] += 1
            if self.counts["ledgers"] % 100 == 0:
                self.tell(f"{self.counts}, {len(self.findings)} findings")
        if ledgers is None:
            self.streams()
        self.look_for_named()

    def streams(self) -> None:
        """All streams in one listing: one segment, and the link behind it, are in memory."""
        for base, keys in groupby(self.stream_keys(), lambda key: "/".join(key.split("/")[:3])):
            stream, opened, opening = Stream(base), None, False
            for number, some in groupby(keys, lambda key: (stream_place(key) or {})["number"]):
                listed = [*some]
                records = [r for r in map(self.read, listed) if r is not None]
                if number is None:
                    opened, opening = next(iter(records), None), True
                    continue
                proof = stream.segment(number, {*listed}, records)
                self.counts["segments"] += all(r["_kind"] != "stream-closed" for r in records)
                if proof is not None:
                    self.segment_objects(stream, proof)
            stream.end(opened, opening)
            for one in stream.out:
                if one["kind"] != "record_missing" or not self.came(one["key"]):
                    self.findings.append(one)

    def stream_keys(self) -> Iterator[str]:
        for full in self.bucket.keys(self.prefix + "streams/"):
            key = full[len(self.prefix) :]
            if stream_place(key) is None:
                self.read(key)  # a key that no record has
            else:
                yield key

    def came(self, key: str) -> bool:
        """Whether what was not listed is there by now."""
        try:
            return self.bucket.head(self.prefix + key) is not None
        except Exception:  # noqa: BLE001  then it is told
            return False

    def segment_objects(self, stream: Stream, proof: Record) -> None:
        proof["_of"] = of_stream(proof["_key"], stream.topic)
        if self.public_keys and not signed_by(proof, self.public_keys):
            ledger, said = about_of(proof)[0], proof["_of"] + "signature"
            have = ("of an accepted key", proof.get("signature"))
            one = finding("unsigned", ledger, None, proof["_key"], said, *have)
            self.findings.append(one)
        sound = not segment_contradictions(proof)
        for part in ("index", "data"):
            key = proof[part]["key"]
            self.counts["objects"] += 1
            try:
                head = self.bucket.head(key)
                missed = "no record says that it may be gone"
                self.findings += check_head(proof, part, head, missed)
                if head is None or not self.deep or not sound:
                    continue
                self.counts["bytes_read"] += head["size"]
                if part == "index":
                    self.findings += check_segment_index(proof, self.bucket.get(key)[0])
                    continue
                for held in proof["ledgers"]:
                    for block in held["blocks"]:
                        end = min(block["offset"] + block["block_length"], head["size"])
                        chunks = self.bucket.ranges(key, block["offset"], end)
                        self.findings += check_block(proof, block, chunks, held["ledger_id"])
            except Exception as error:  # noqa: BLE001  one request's failure is one finding
                what = proof["_of"] + "reading it"
                one = finding("unreadable", *about_of(proof), key, what, "bytes", error)
                self.findings.append(one)

    def pages(self, ledgers: list[int] | None) -> None:
        """Faults of the pages are told in a check of everything. For chosen ledgers only those
        are that leave open what a page names.
        """
        self.named = Named(ledgers)
        seen: list[tuple[int, str | None, str | None]] = []
        before = len(self.findings)
        for full in self.bucket.keys(self.prefix + PAGES):
            key = full[len(self.prefix) :]
            page = self.read(key)
            if PAGE_KEY.fullmatch(key) is None:
                continue
            number = page_number(key)
            self.newest_page = max(self.newest_page, number)
            if page is None:
                seen.append((number, None, None))
            else:
                seen.append((number, page["_sha256"], page["previous"]))
                self.named.take(page)
        if ledgers is None:
            self.findings += check_pages(seen)
        else:
            told = self.findings[before:]
            self.findings[before:] = [one for one in told if one["kind"] == "unreadable"]

    def look_for_named(self) -> None:
        """What was read is compared by then. In other folders a listing tells that it is there.

        What was taken away since is on a page that is newer than all that were read.
        """
        read = (*FOLDER_OF, "forget-plans", "streams")
        others = [key for key in self.named.left() if key.split("/")[0] not in read]
        for folder in sorted({key.rpartition("/")[0] for key in others}):
            for full in self.bucket.keys(f"{self.prefix}{folder}/"):
                self.named.saw(full[len(self.prefix) :])
        for full in self.bucket.keys(self.prefix + PAGES) if self.named.left() else ():
            key = full[len(self.prefix) :]
            if PAGE_KEY.fullmatch(key) is None:
                continue
            if page_number(key) <= self.newest_page:
                break
            page = self.read(key)
            if page is not None:
                self.named.take(page, gone_only=True)
        self.findings += self.named.findings(self.forgotten)

    def read(self, key: str) -> Record | None:
        record = self.read_one(key)
        self.named.saw(key, None if record is None else record["_sha256"])
        return record

    def read_one(self, key: str) -> Record | None:
        place = place_of(key) or ("", None, None)
        self.counts["records"] += 1
        try:
            head = self.bucket.head(self.prefix + key)
            if head is None and place[0] == "failure":
                return None  # listed, and removed since: its ledger moved on
            if head is None or head["size"] > RECORD_BYTES_MAX:
                kind = "unreadable" if head is None else "record_damaged"
                want = f"at most {RECORD_BYTES_MAX} bytes"
                what = of_stream(key) + "reading it"
                one = finding(kind, place[1], place[2], key, what, want, head)
                self.findings.append(one)
                return None
            body, stored_at = self.bucket.get(self.prefix + key)
        except Exception as error:  # noqa: BLE001  one request's failure is one finding
            said = (of_stream(key) + "reading it", "bytes", error)
            self.findings.append(finding("unreadable", place[1], place[2], key, *said))
            return None
        record, findings = check_record(key, body, stored_at, self.skew)
        self.findings += findings
        return record

    def objects(self, proof: Record, missed: str | None) -> None:
        about = (proof["ledger"]["ledger_id"], proof["uid"])
        sound = not contradictions(proof)
        for part in ("index", "data"):
            key = proof[part]["key"]
            self.counts["objects"] += 1
            try:
                head = self.bucket.head(key)
                self.findings += check_head(proof, part, head, missed)
                if head is None or not self.deep or not sound:
                    continue
                self.counts["bytes_read"] += head["size"]
                if part == "index":
                    self.findings += check_index(proof, self.bucket.get(key)[0])
                    continue
                for block in proof["blocks"]:
                    end = min(block["offset"] + block["block_length"], head["size"])
                    chunks = self.bucket.ranges(key, block["offset"], end)
                    self.findings += check_block(proof, block, chunks)
                    self.tell(f"{key}: block {block['part_number']} of {len(proof['blocks'])}")
            except Exception as error:  # noqa: BLE001  one request's failure is one finding
                self.findings.append(finding("unreadable", *about, key, "it", "bytes", error))


def tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def instance_of(folders: Iterable[str]) -> str:
    """The one instance that has records; `probe/` is what a doctor tries the store with."""
    found = [name for name in (folder.split("/")[1] for folder in folders) if name != "probe"]
    if len(found) != 1:
        raise ValueError(f"instances below tierkeeper/: {found}; name one by --instance")
    return found[0]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--endpoint", help="URL of the store; without it the provider's own")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument(
        "--instance", help="BookKeeper's INSTANCEID; needed where there are several"
    )
    parser.add_argument("--ledger", type=int, action="append", help="only this ledger; repeatable")
    parser.add_argument("--deep", action="store_true", help="read every byte of both objects")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--public-key", action="append", default=[], metavar="PEM")
    parser.add_argument("--in-flight", type=float, default=3600.0, metavar="SECONDS")
    parser.add_argument("--fleet-share-max", type=float, default=SHARE_MAX, metavar="SHARE")
    parser.add_argument("--clock-skew", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    try:
        import boto3

        public_keys = []
        for name in options.public_key:
            with open(name, encoding="ascii") as file:
                public_keys.append(public_key_of(file.read()))
        client = boto3.client("s3", endpoint_url=options.endpoint, region_name=options.region)
        bucket = Bucket(client, options.bucket)
        instance = options.instance or instance_of(bucket.folders("tierkeeper/"))
        check = Check(
            bucket,
            instance,
            deep=options.deep,
            skew=timedelta(seconds=options.clock_skew),
            in_flight=timedelta(seconds=options.in_flight),
            public_keys=public_keys,
            tell=tell,
            share_max=options.fleet_share_max,
        )
        check.run(options.ledger)
    except Exception as error:  # noqa: BLE001  the process edge
        sys.stderr.write(f"error: {error}\n")
        return 2
    report = {
        "schema": "tierkeeper/check-bucket/1",
        "result": "findings" if check.findings else "ok",
        "instance": instance,
        "deep": options.deep,
        **check.counts,
        "findings": check.findings,
    }
    if options.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        for one in check.findings:
            sys.stdout.write(" ".join(f"{k}={v}" for k, v in one.items() if v is not None) + "\n")
        sys.stdout.write(f"{instance}: {check.counts}: {len(check.findings)} findings\n")
    return 1 if check.findings else 0


if __name__ == "__main__":
    sys.exit(main())
