"""Would a bucket's lifecycle rule take our objects away? Pure; the rules are S3's.

Our data and index objects begin with a uuid, our records with `tierkeeper/`. A rule for another
prefix, or for tagged objects (ours carry none), does not reach them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiering_assets.resources.object_store.storage_class import class_reads

RECORDS_PREFIX = "tierkeeper/"
_HEX = frozenset("0123456789abcdef-")
_UUID_CHARS = 36


def lifecycle_dangers(rule: Mapping[str, Any]) -> list[str]:
    """What this rule would do to our objects; empty when it does nothing bad."""
    if rule.get("Status") != "Enabled" or not _reaches_ours(rule):
        return []
    name = rule.get("ID") or "without an id"
    found = []
    if rule.get("Expiration", {}).keys() & {"Days", "Date"}:
        found.append(f"rule {name}: expires our objects")
    for transition in rule.get("Transitions", ()):
        storage = transition.get("StorageClass")
        reads = class_reads(storage)
        if reads is False:
            found.append(f"rule {name}: moves our objects to {storage}, which no broker can read")
        elif reads is None:
            found.append(
                f"rule {name}: moves our objects to {storage}, a class that we do not know: have it "
                f"move one, and run `tierkeeper object verify` on that"
            )
    return found


def _reaches_ours(rule: Mapping[str, Any]) -> bool:
    selection = rule.get("Filter") or {}
    both = selection.get("And") or {}
    if "Tag" in selection or both.get("Tags"):
        return False
    prefix = str(selection.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or "")
    if prefix.startswith(RECORDS_PREFIX) or RECORDS_PREFIX.startswith(prefix):
        return True
    return _HEX.issuperset(prefix[:_UUID_CHARS])
