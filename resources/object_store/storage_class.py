"""Which storage classes a GET answers at once: the one table. Pure.

Owns: a broker waits for no restore, so an object is readable only in a class of this table that
answers, or where a byte of it was read. Other stores have classes of their own (MinIO's tiers have
the names that their operators gave them, Ceph's placements likewise), so an unknown name says
nothing, neither way.

Source: S3's storage classes; "archive" is what answers InvalidObjectState until it is restored.
"""

from __future__ import annotations

from typing import Final

CLASSES: Final = {
    "": True,  # S3 names no class for STANDARD
    "STANDARD": True,
    "STANDARD_IA": True,
    "ONEZONE_IA": True,
    "REDUCED_REDUNDANCY": True,
    "INTELLIGENT_TIERING": True,
    "EXPRESS_ONEZONE": True,
    "GLACIER_IR": True,
    "GLACIER": False,
    "DEEP_ARCHIVE": False,
}


def class_reads(storage_class: str | None) -> bool | None:
    """Whether a GET answers at once; None for a class that we do not know."""
    return CLASSES.get(storage_class or "")
