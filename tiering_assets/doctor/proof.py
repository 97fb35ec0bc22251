"""Doctor's look at the proof of the bucket's promises that is on record."""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.copy.ask_first import recorded_proof
from tiering_assets.copy.bucket_promises import PROMISES
from tiering_assets.ground.finding import Finding, ok, skip
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.settings import Settings

_CHECK = "bucket proofs"


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        found = recorded_proof(stack)
    if found is None:
        yield skip(
            _CHECK,
            f"none on record: {', '.join(PROMISES)}; `tierkeeper doctor --prove` tries them with "
            f"throw-away keys, and so does the first offload",
        )
    else:
        at = moment(found.record.proven_at)
        yield ok(_CHECK, f"proven {at}: {', '.join(found.record.promises)}")
