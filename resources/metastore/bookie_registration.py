"""What a bookie registers about itself: where its RPC and HTTP ports are.

Owns: bytes of a registration node -> addresses. An ensemble member is an id, not an address; only
bookies that register nothing (old ones) use `host:port` as their id. Source: BookKeeper
BookieServiceInfoFormat, DefaultBookieAddressResolver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from tiering_assets.resources._proto.BookKeeperDataFormats_pb2 import BookieServiceInfoFormat
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.proto_text import require_text

_RPC_PROTOCOL = "bookie-rpc"
_HTTP_PROTOCOL = "http"
_HOST_AND_PORT = re.compile(r"(.+):([0-9]{1,5})", re.ASCII)

Address = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieRegistration:
    """`http` has the RPC host: the registered HTTP host is the bind address, often 0.0.0.0."""

    bookie_id: str
    rpc: Address
    http: Address | None

    def page(self, http_port: int) -> Address | None:
        """Where its figures are: at `http_port`, or where it registered itself if that is 0."""
        return (self.rpc[0], http_port) if http_port else self.http


def decode_registration(bookie_id: str, data: bytes) -> BookieRegistration:
    """Decode the data of an `available` node; FormatError if it gives no RPC address."""
    if not data:
        rpc = address_in_id(bookie_id)
        if rpc is None:
            raise FormatError(
                f"bookie {bookie_id} registers no address, and its id is of another form"
            )
        return BookieRegistration(bookie_id=bookie_id, rpc=rpc, http=None)
    message = BookieServiceInfoFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"bookie {bookie_id}: its registration does not parse") from error
    ports = {endpoint.protocol: endpoint for endpoint in reversed(message.endpoints)}
    found = ports.get(_RPC_PROTOCOL)
    host = require_text(f"bookie {bookie_id}: its host", found.host) if found else ""
    if not message.IsInitialized() or found is None or not host or not 0 < found.port < 65536:
        raise FormatError(f"bookie {bookie_id}: its registration has no {_RPC_PROTOCOL} endpoint")
    http = ports.get(_HTTP_PROTOCOL)
    has_http = http is not None and 0 < http.port < 65536
    return BookieRegistration(
        bookie_id=bookie_id,
        rpc=(host, found.port),
        http=(host, http.port) if http is not None and has_http else None,
    )


def address_in_id(bookie_id: str) -> Address | None:
    """The address that an id spells, or None if it is a name."""
    match = _HOST_AND_PORT.fullmatch(bookie_id)
    if match is None or not 0 < int(match.group(2)) < 65536:
        return None
    return match.group(1), int(match.group(2))
