"""The seal of a report: the SHA-256 of its facts, and who signed it. Pure.

Owns: a seal is a small object in the records' canonical bytes, signed as a certificate is. It has
the whole public key, so that a swapped signature shows to everybody; whether that key counts is for
the settings to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tiering_assets.audit.report.facts_text import text_sha256
from tiering_assets.records.signature import SIGNATURE, PublicKeys, Signer
from tiering_assets.resources.errors import FormatError, IntegrityError
from tiering_assets.resources.object_store.records import decode_record, encode_record

SCHEMA: Final = "tierkeeper/audit-report-seal/1"
_PLAIN: Final = frozenset({"schema", "facts_sha256"})
_SIGNED: Final = _PLAIN | {"public_key", SIGNATURE}
NOBODY: Final = "nobody vouches for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSeal:
    facts_sha256: str
    signed_by: str | None
    body: Mapping[str, Any]


def seal_text(facts: str, signer: Signer | None) -> str:
    """One line."""
    body: dict[str, Any] = {"schema": SCHEMA, "facts_sha256": text_sha256(facts)}
    if signer is not None:
        body["public_key"] = signer.public_pem.decode()
        body[SIGNATURE] = signer.sign(body)
    return encode_record(body).decode()


def read_seal(text: str, *, name: str) -> ReportSeal:
    """A seal whose signature, if there is one, fits the public key beside it."""
    broken = f"{name}: its seal is damaged"
    try:
        body = decode_record(text.encode(), key="seal")
    except FormatError:
        raise FormatError(broken) from None
    signed = SIGNATURE in body
    fields = body.keys() == (_SIGNED if signed else _PLAIN)
    if not fields or body["schema"] != SCHEMA or encode_record(body).decode() != text:
        raise FormatError(broken)
    if not signed:
        return ReportSeal(facts_sha256=str(body["facts_sha256"]), signed_by=None, body=body)
    try:
        own = PublicKeys([str(body["public_key"]).encode()])
    except FormatError as error:
        raise FormatError(f"{broken}: {error}") from None
    problem = own.problem(body)
    if problem is not None:
        raise IntegrityError(f"{name}: its signature was swapped or its seal was edited: {problem}")
    return ReportSeal(facts_sha256=str(body["facts_sha256"]), signed_by=own.key_ids[0], body=body)


def check_seal(seal: ReportSeal, facts: str, *, name: str) -> None:
    found = text_sha256(facts)
    if found != seal.facts_sha256:
        raise IntegrityError(
            f"{name}: its facts or its seal were edited: the facts have SHA-256 {found}, and the "
            f"seal says {seal.facts_sha256:.80}"
        )


def who_vouches(seal: ReportSeal, accepted: PublicKeys, *, name: str) -> tuple[bool, str]:
    """Whether an accepted key signed it, and that in words.

    Raises:
        IntegrityError: it is signed, and by none of the accepted keys.
    """
    if seal.signed_by is None:
        return False, f"not signed: {NOBODY}"
    if not accepted:
        return False, f"signed by key {seal.signed_by}; no public key is set: {NOBODY}"
    problem = accepted.problem(seal.body)
    if problem is not None:
        raise IntegrityError(f"{name}: {problem}")
    return True, f"signed by key {seal.signed_by}, which sign.public_key_files has"
