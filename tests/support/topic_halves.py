"""One half of `change_topic` alone: publish, or release. What ended it is raised."""

from collections.abc import Sequence
from typing import Any, TypeVar

from tiering_assets.change.change_topic import NOTHING, Order, carry_out
from tiering_assets.change.disturb import see
from tiering_assets.change.publish import (
    Certificates,
    PublicationWork,
    PublishResult,
    ToPublish,
    prepare_publication,
)
from tiering_assets.ground.stack import Stack
from tiering_assets.release.release import ToRelease, prepare_release
from tiering_assets.release.work import ReleaseResult, ReleaseWork
from tiering_assets.resources.errors import TierkeeperError

R = TypeVar("R")


def publish_topic(
    stack: Stack, ml_name: str, certificates: Certificates, **how: Any
) -> dict[int, PublishResult]:
    order = ToPublish(certificates=certificates, **how)
    return _made(stack, ml_name, order)


def release_topic(
    stack: Stack, ml_name: str, ledger_ids: Sequence[int], **how: Any
) -> dict[int, ReleaseResult]:
    order = ToRelease(ledger_ids=ledger_ids, **how)
    return _made(stack, ml_name, order)


def publication_work(
    stack: Stack, ml_name: str, certificates: Certificates, **how: Any
) -> PublicationWork:
    """What is left to publish, behind the gate and before any write."""
    order = ToPublish(certificates=certificates, **how)
    return prepare_publication(stack, ml_name, order, see(stack, ml_name))


def release_work(stack: Stack, ml_name: str, ledger_ids: Sequence[int], **how: Any) -> ReleaseWork:
    """What is left to release, behind the gate and before any mark."""
    order = ToRelease(ledger_ids=ledger_ids, **how)
    return prepare_release(stack, ml_name, order, see(stack, ml_name))


def _made(stack: Stack, ml_name: str, order: Order[R]) -> dict[int, R | TierkeeperError]:
    seen = see(stack, ml_name)
    half, _nothing = carry_out(stack, ml_name, seen, order.prepare(stack, ml_name, seen), NOTHING)
    if half.failed is not None:
        raise half.failed
    return {**half.settled}
