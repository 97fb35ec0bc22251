"""Signatures and digests of records: who certified it, and whether its bytes are as written.

Owns: `digest` is SHA-256 over a record's canonical bytes without that field, so that damage shows
in a record that no later one names. `signature` is Ed25519 over the canonical bytes without either
field: unknown fields of a newer writer are signed and verified, too. A digest proves nothing
against somebody who can write to the bucket; a signature does.

Refuses keys that are not Ed25519. Nothing here reads a file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.records import encode_record

SIGNATURE: Final = "signature"
DIGEST: Final = "digest"


def with_digest(body: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its own digest, as it is stored."""
    return {**body, DIGEST: record_digest(body)}


def record_digest(body: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical bytes without the digest field: lower-case hex."""
    return sha256(_bytes_without(body, DIGEST)).hexdigest()


def digest_problem(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a record's own digest; None also where an older writer wrote none."""
    if DIGEST not in body:
        return None
    found, expected = body[DIGEST], record_digest(body)
    return (
        None if found == expected else f"field {DIGEST}: expected {expected}, found {found!r:.80}"
    )


class Signer:
    """A private key. Its repr shows no part of it."""

    __slots__ = ("_key", "key_id", "public_pem")

    def __init__(self, pem: bytes) -> None:
        """Raises FormatError for anything but an unencrypted Ed25519 private key in PEM."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # their text may quote the key
            raise FormatError("not a private key in PEM form, or one with a password") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise FormatError("not an Ed25519 key")
        self._key = key
        public = key.public_key()
        self.key_id = _key_id(public)
        self.public_pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, body: Mapping[str, Any]) -> dict[str, str]:
        """The `signature` field of a record."""
        value = self._key.sign(_bytes_without(body, SIGNATURE, DIGEST))
        return {"key_id": self.key_id, "value": base64.b64encode(value).decode()}


class PublicKeys:
    """The keys whose signature counts; empty where no signature is asked for.

    `required` says whether a record that none of them is said to have signed is refused for that.
    """

    __slots__ = ("_keys", "_required")

    def __init__(self, pems: Iterable[bytes] = (), *, required: bool = True) -> None:
        """Raises FormatError for anything but an Ed25519 public key in PEM."""
        self._required = required
        self._keys: dict[str, Ed25519PublicKey] = {}
        for pem in pems:
            try:
                key = load_pem_public_key(pem)
            except (ValueError, TypeError, UnsupportedAlgorithm):
                raise FormatError("not a public key in PEM") from None
            if not isinstance(key, Ed25519PublicKey):
                raise FormatError("not an Ed25519 key")
            self._keys[_key_id(key)] = key

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def key_ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._keys))

    def refusal(self, body: Mapping[str, Any]) -> str | None:
        """As `problem`, but None where no signature is required and none of these keys is named.

        A bad signature under the name of an accepted key is never passed over.
        """
        if not self._required and _signer_of(body) not in self.key_ids:
            return None
        return self.problem(body)

    def problem(self, body: Mapping[str, Any]) -> str | None:
        """Why a record counts as unsigned, or None. Always None where no key is configured."""
        if not self._keys:
            return None
        found = body.get(SIGNATURE)
        if not isinstance(found, Mapping):
            return "it is not signed"
        key_id, value = found.get("key_id"), found.get("value")
        key = self._keys.get(key_id) if isinstance(key_id, str) else None
        if key is None:
            known = ", ".join(sorted(self._keys))
            return f"signed by key {key_id!r:.40}, accepted are {known}"
        try:
            raw = base64.b64decode(value if isinstance(value, str) else "", validate=True)
            key.verify(raw, _bytes_without(body, SIGNATURE, DIGEST))
        except (InvalidSignature, binascii.Error, ValueError):
            return f"its signature by key {key_id} does not fit its bytes"
        return None


def _signer_of(body: Mapping[str, Any]) -> object:
    """The id of the key that a record says has signed it, as it stands there."""
    found = body.get(SIGNATURE)
    return found.get("key_id") if isinstance(found, Mapping) else None


def _key_id(key: Ed25519PublicKey) -> str:
    """First 16 hex digits of the SHA-256 of the 32 key bytes."""
    return sha256(key.public_bytes_raw()).hexdigest()[:16]


def _bytes_without(body: Mapping[str, Any], *names: str) -> bytes:
    return encode_record({name: value for name, value in body.items() if name not in names})
