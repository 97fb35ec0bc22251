"""What vouches for the bytes of a copy, before the bookie copy may go. Pure.

Owns the rule for signatures: an accepted key vouches. Without keys a new reading of every byte
does. With keys and `sign.require = false`, one does for a certificate that nobody signed, or whose
key is not ours. A signature that an accepted key is said to have made and did not make is damage or
forgery, and no reading mends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from tiering_assets.ground.signing import has_public_keys
from tiering_assets.records.signature import PublicKeys
from tiering_assets.resources.settings import Settings


class Voucher(Enum):
    KEY = "an accepted key"
    READING = "every byte is read again"
    RECORD = "the certificate alone"  # only where release.reread_without_key is off
    NOBODY = "nobody: it does not count"


def voucher_of(keys: PublicKeys, certificate: Mapping[str, Any], *, rereads: bool) -> Voucher:
    """`rereads` is release.reread_without_key: without it no reading replaces a signature."""
    if not keys:
        return Voucher.READING if rereads else Voucher.RECORD
    if keys.refusal(certificate) is not None:
        return Voucher.NOBODY
    if keys.problem(certificate) is None:
        return Voucher.KEY
    return Voucher.READING if rereads else Voucher.NOBODY


def reread_possible(settings: Settings) -> bool:
    """Whether a release with these settings may read every byte, and so needs a task runner."""
    signed = has_public_keys(settings) and settings.sign.require
    return settings.release.reread_without_key and not signed
