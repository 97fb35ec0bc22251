"""Was a released ledger released by the rules? Judged from its records alone, afterwards.

Owns: nothing here allows or stops a release (release_gate.py does, beforehand); a fault found here
means that a rule was broken or that a record was.
"""

from __future__ import annotations

from tiering_assets.records.models import Certificate, Release, ReleaseIntent


def find_release_faults(
    certificate: Certificate | None,
    certificate_sha256: str | None,
    intent: ReleaseIntent | None,
    intent_sha256: str | None,
    release: Release | None,
) -> tuple[str, ...]:
    """Return every broken link of certificate -> intent -> release; empty when there is none."""
    if release is None:
        return ("there is no release record",)
    if intent is None:
        return ("the bookie copy is gone, but no intent was written before",)
    faults = []
    if certificate is None:
        faults.append("there is no certificate of this attempt")
    elif certificate.ledger != intent.ledger:
        faults.append(f"certified {certificate.ledger}, released {intent.ledger}")
    if intent.certificate_sha256 != certificate_sha256:
        faults.append("the intent names another certificate")
    if release.previous != intent_sha256:
        faults.append("the release record names another intent")
    if release.released_at < intent.intended_at:
        faults.append(
            f"released at {release.released_at}, before its intent at {intent.intended_at}"
        )
    waited_s = (intent.intended_at - intent.published_at).total_seconds()
    if waited_s <= intent.deletion_lag_s:
        faults.append(
            f"released {waited_s:.0f} s after publication, "
            f"the deletion lag is {intent.deletion_lag_s:g} s"
        )
    return tuple(faults)
