"""Digests of stored entries and the two keys made from a ledger's password.

Owns: the digest covers the 32 header bytes and the payload, and nothing else
(BookKeeper `DigestManager` and its subclasses; keys: `MacDigestManager`). CRC32 takes eight bytes,
its upper four zero. DUMMY checks nothing and says so by its size of zero.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from google_crc32c import extend, value

from tiering_assets.resources.bookkeeper.ledger import DigestType

Buffer = bytes | bytearray | memoryview
DigestFunction = Callable[[Buffer, Buffer], bytes]

DIGEST_BYTES: Mapping[DigestType, int] = MappingProxyType(
    {DigestType.CRC32: 8, DigestType.HMAC: 20, DigestType.CRC32C: 4, DigestType.DUMMY: 0}
)


def master_key(password: bytes) -> bytes:
    """The 20 bytes a bookie asks for on every add; never needed for a plain read."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()


def mac_key(password: bytes) -> bytes:
    """The key of the HMAC digest; not the master key."""
    return hashlib.sha1(b"mac" + password, usedforsecurity=False).digest()


def digest_function(digest_type: DigestType, password: bytes) -> DigestFunction:
    """Return the function (header, payload) -> digest bytes of one ledger."""
    match digest_type:
        case DigestType.CRC32C:
            return _crc32c_digest
        case DigestType.CRC32:
            return _crc32_digest
        case DigestType.HMAC:
            return _hmac_digest(mac_key(password))
        case DigestType.DUMMY:
            return _no_digest


def _crc32c_digest(header: Buffer, payload: Buffer) -> bytes:
    digest: int = extend(value(bytes(header)), bytes(payload))
    return digest.to_bytes(4, "big")


def _crc32_digest(header: Buffer, payload: Buffer) -> bytes:
    return zlib.crc32(payload, zlib.crc32(header)).to_bytes(8, "big")


def _hmac_digest(key: bytes) -> DigestFunction:
    keyed = hmac.new(key, digestmod="sha1")  # keyed once, copied per entry

    def digest(header: Buffer, payload: Buffer) -> bytes:
        mac = keyed.copy()
        mac.update(header)
        mac.update(payload)
        return mac.digest()

    return digest


def _no_digest(header: Buffer, payload: Buffer) -> bytes:
    del header, payload
    return b""
