"""Topic names, their admin paths, and the namespace bundle a topic hashes into. Pure.

A bundle is a range of the unsigned CRC-32 of the full topic name, `0xlower_0xupper`: lower
included, upper not, except that 0xffffffff belongs to the last one.
Source: Pulsar NamespaceBundleFactory and NamespaceBundle.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from urllib.parse import quote

from tiering_assets.resources.errors import FormatError

_RANGE = re.compile(r"0x([0-9a-f]{8})_0x([0-9a-f]{8})")
_PARTITION = re.compile(r"-partition-(0|[1-9][0-9]*)$")
_HASH_END = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class FullTopicName:
    """`persistent://tenant/namespace/name`; one partition where the name says so."""

    tenant: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Below /admin/v2, encoded: a name may hold any character, `+` and `%` among them."""
        return f"/persistent/{self._encoded}"

    @property
    def schemas_path(self) -> str:
        """Of its schemas, which are those of the whole topic."""
        return f"/schemas/{self._encoded}/schemas"

    @property
    def namespace_path(self) -> str:
        return namespace_path(f"{self.tenant}/{self.namespace}")

    @property
    def whole(self) -> FullTopicName:
        """The partitioned topic this is a partition of, else the topic itself."""
        return FullTopicName(self.tenant, self.namespace, _PARTITION.sub("", self.name))

    @property
    def _encoded(self) -> str:
        return "/".join(quote(x, safe="") for x in (self.tenant, self.namespace, self.name))

    @property
    def hash(self) -> int:
        return zlib.crc32(str(self).encode("utf-8"))


def parse_topic(topic: str) -> FullTopicName:
    """Read a persistent topic's full name. FormatError for anything else, legacy names included."""
    scheme, found, rest = topic.partition("://")
    segments = rest.split("/")
    if not found or scheme != "persistent" or len(segments) != 3 or not all(segments):
        raise FormatError(
            f"{topic!r} is not persistent://tenant/namespace/name: brokers' admin API knows no other"
        )
    return FullTopicName(*segments)


def namespace_path(namespace: str) -> str:
    """Below /admin/v2, for `tenant/namespace`."""
    segments = namespace.split("/")
    if len(segments) != 2 or not all(segments):
        raise ValueError(f"{namespace!r} is not tenant/namespace")
    return "/namespaces/" + "/".join(quote(segment, safe="") for segment in segments)


def bundle_holds(bundle: str, topic: FullTopicName) -> bool:
    """True when `tenant/namespace/0xlower_0xupper` is the bundle of this topic.

    Raises:
        FormatError: the bundle is not written like that.
    """
    namespace, _, span = bundle.rpartition("/")
    match = _RANGE.fullmatch(span.lower())
    if match is None or not namespace:
        raise FormatError(f"not a namespace bundle: {bundle!r}")
    lower, upper = int(match[1], 16), int(match[2], 16)
    if namespace != f"{topic.tenant}/{topic.namespace}":
        return False
    return lower <= topic.hash < upper or topic.hash == upper == _HASH_END
