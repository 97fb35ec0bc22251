"""What a plan allows: exactly these attempts with exactly these certificates. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Approval:
    """The plan's digest, and for each ledger the attempt and the digest of its certificate."""

    plan: str
    ledgers: Mapping[int, tuple[UUID, str]]

    def difference(self, ledger_id: int, uid: UUID, certificate_sha256: str) -> str | None:
        """How a ledger differs from the plan; None when it is what was planned."""
        planned = self.ledgers.get(ledger_id)
        if planned is None:
            return "the plan does not list it"
        if planned != (uid, certificate_sha256):
            return (
                f"it moved since it was planned: attempt {planned[0]} with certificate "
                f"{planned[1]:.12}… then, {uid} with {certificate_sha256:.12}… now"
            )
        return None
