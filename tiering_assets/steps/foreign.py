"""Objects in the bucket that no attempt of ours made: whose are they? They are never touched."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from tiering_assets.offload_format.keys import INSTANCE_KEY
from tiering_assets.records import keys
from tiering_assets.steps.bucket_listing import BucketListing, Pair
from tiering_assets.steps.contexts import Named
from tiering_assets.steps.stack import Stack

ASKED_MAX = 1000  # HEAD requests for objects that nothing here knows


class Owner(Enum):
    """The value is what people read."""

    BROKER = "a broker of this cluster"
    OTHER_INSTANCE = "tierkeeper for another BookKeeper instance"
    NO_RECORD = "tierkeeper for this instance, and its attempt record is gone"
    UNKNOWN = "unknown: neither a record nor a topic of this cluster names it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Objects and uploads of one attempt; `detail` names the topic or the instance."""

    pair: Pair
    objects: tuple[str, ...]
    uploads: tuple[str, ...]
    bytes: int
    owner: Owner
    detail: str


def find_foreign(
    stack: Stack,
    listing: BucketListing,
    named: Mapping[Pair, Named],
    *,
    known: Collection[Pair] = (),
) -> list[Foreign]:
    """Whatever is in the listing besides our attempts and the `known` leavings of brokers."""
    ours = {keys.pair_of(key) for key in stack.book.keys("attempts/")}
    left = ASKED_MAX
    found: list[Foreign] = []
    for pair in sorted(listing.pairs() - ours - set(known)):
        place = named.get(pair)
        if place is not None:
            owner, detail = Owner.BROKER, place.ml_name
        elif left and (objects := listing.keys_of(pair)):
            left -= 1
            owner, detail = _ask(stack, objects[0])
        else:
            owner, detail = Owner.UNKNOWN, "" if left else f"not asked, after {ASKED_MAX} others"
        found.append(
            Foreign(
                pair=pair,
                objects=listing.keys_of(pair),
                uploads=listing.uploads_of(pair),
                bytes=listing.bytes_of(pair),
                owner=owner,
                detail=detail,
            )
        )
    return found


def _ask(stack: Stack, key: str) -> tuple[Owner, str]:
    head = stack.objects.head(key)
    instance = None if head is None else head.metadata.get(INSTANCE_KEY)
    if instance is None:
        return Owner.UNKNOWN, ""
    if instance == stack.instance:
        return Owner.NO_RECORD, ""
    return Owner.OTHER_INSTANCE, instance
