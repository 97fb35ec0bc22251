"""What a key below `tierkeeper/<instance>/` is: a record's, or a stray that somebody else put
there.

Owns: every key that keys.py can make has exactly one kind here, by a test that makes them all. A
stray, such as the zero-byte "folder" of an S3 console, is no record: nothing is read from it and
nothing follows from it. A record's key with content that cannot be read is no stray: it is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LEDGER = r"(?:0|[1-9][0-9]{0,18})"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HASH = r"[0-9a-f]{32}"
_DIGEST = r"[0-9a-f]{64}"
_HOUR = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}"
_OF_ATTEMPT = rf"{_LEDGER}/{_UUID}\.json"
_SEGMENT = r"[0-9]{10}"
_OF_SEGMENT = rf"(?:link|offloaded|given-up)\.json|(?:attempts|failed)/{_UUID}\.json"
_OF_STREAM = rf"opened\.json|{_SEGMENT}\.(?:{_OF_SEGMENT})"
_SCOPE = rf"all\.json|topics/{_HASH}\.json|namespaces/{_HASH}\.json"

_SHAPES: Final[Mapping[str, str]] = {
    "attempts": _OF_ATTEMPT,
    "begun-releases": rf"{_HOUR}/{_LEDGER}\.{_UUID}\.json",
    "broker-copies": _OF_ATTEMPT,
    "brokers": r"seen\.json",
    "brokers-gone": rf"{_UUID}\.json",
    "bucket-proofs": rf"{_HASH}\.json",
    "budgets": r"current\.json",
    "canaries": rf"{_HASH}\.json",
    "certificates": _OF_ATTEMPT,
    "claims": rf"{_LEDGER}\.json",
    "damage": _OF_ATTEMPT,
    "day-book": r"[0-9]{19}\.json",
    "disturbances": rf"{_HOUR}/{_HASH}/{_UUID}\.[0-9a-f]{{16}}\.json",
    "expired-plans": rf"{_DIGEST}\.json",
    "failures": rf"{_LEDGER}\.json",
    "forget-plans": rf"{_DIGEST}\.json",
    "hold-lifts": rf"{_UUID}\.json",
    "holds": rf"{_LEDGER}\.json|{_SCOPE}",
    "leftovers": _OF_ATTEMPT,
    "loads": rf"{_HOUR}/{_HASH}/{_UUID}\.json",
    "outcomes": _OF_ATTEMPT,
    "pause-lifts": rf"{_UUID}\.json",
    "pauses": _SCOPE,
    "plans": rf"{_DIGEST}\.json",
    "publications": rf"{_HASH}/[0-9]{{10}}\.json",
    "quarantines": _OF_ATTEMPT,
    "removals": _OF_ATTEMPT,
    "releases": rf"{_LEDGER}/{_UUID}(?:\.intent)?\.json",
    "run-batches": rf"{_DIGEST}\.json",
    "schemas": rf"{_HASH}/{_LEDGER}\.{_LEDGER}\.json",
    "scrubs": rf"{_LEDGER}/{_UUID}\.(?:shallow|deep|partial|failed)\.json",
    "streams": rf"{_HASH}/[0-9]{{19}}\.[0-9]{{4}}/(?:{_OF_STREAM})",
    "sweep-intents": _OF_ATTEMPT,
    "sweeps": _OF_ATTEMPT,
    "undos": rf"{_HASH}/{_UUID}(?:\.confirmed)?\.json",
}
_RULES: Final = {folder: re.compile(shape) for folder, shape in _SHAPES.items()}
FOLDERS: Final = tuple(_SHAPES)
TABLES: Final = "catalogue/"
"""Below it lie files of the catalogue's tables: neither records nor strays."""


def is_record_key(key: str) -> bool:
    """Whether a key, relative to the instance's prefix, is one that a record of ours may have."""
    folder, _slash, rest = key.partition("/")
    rule = _RULES.get(folder)
    return rule is not None and rule.fullmatch(rest) is not None


def what_a_stray_may_be(key: str) -> str:
    """What somebody may have meant by a stray key; empty where nothing follows from it."""
    if key.startswith("holds/"):
        return "possibly meant as a hold, and holds nothing"
    return "possibly meant as a pause, and pauses nothing" if key.startswith("pauses/") else ""
