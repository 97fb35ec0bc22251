"""Objects in the bucket that no attempt of ours made: whose are they? They are never touched."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum

from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bucket_listing import BucketListing, Pair
from tiering_assets.look.topic.contexts import Named
from tiering_assets.offload_format.keys import INSTANCE_KEY

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
    known: Set[Pair],
) -> list[Foreign]:
    """Whatever is in the listing besides what is `known`: our attempts and leavings of brokers."""
    left = ASKED_MAX
    found: list[Foreign] = []
    for pair in sorted(listing.pairs() - known):
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
