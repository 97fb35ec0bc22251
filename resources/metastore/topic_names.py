"""Topic name, managed-ledger name and node path: three spellings of one thing.

Owns: the three are inverse, with Pulsar's own encoding (Java's URLEncoder: space is `+`, `~` is
%7E), for today's names (tenant/namespace) and legacy ones (tenant/cluster/namespace), which still
occur. Source: Pulsar TopicName, Codec, MetaStoreImpl. Also owns the list of managed ledgers that
tierkeeper never touches, whatever a policy says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus, unquote_plus

from tiering_assets.resources.errors import FormatError

MANAGED_LEDGERS_ROOT = "/managed-ledgers"
PERSISTENT = "persistent"
SHADOW_SOURCE_PROPERTY = "PULSAR.SHADOW_SOURCE"  # ManagedLedgerImpl: a shadow of another topic

_SCHEME = f"{PERSISTENT}://"
_PARTITION = re.compile(r"(.*)-partition-(0|[1-9][0-9]{0,8})", re.DOTALL | re.ASCII)
_HOST_AND_PORT = re.compile(r"[^:]+:[0-9]+", re.ASCII)
_PENDING_ACK_SUFFIXES = ("__transaction_pending_ack", "-transaction-pendingack")  # 2.8+, before
_SYSTEM_LOCAL_NAMES = frozenset({"transaction_coordinator_assign"})
_FUNCTIONS_NAMESPACE = ("public", "functions")  # functions_worker.yml: pulsarFunctionsNamespace
_FUNCTIONS_LOCAL_NAMES = frozenset({"assignments", "coordinate", "metadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicName:
    """A persistent topic or one partition of it. `local_name` is plain text, not encoded."""

    tenant: str
    namespace: str
    local_name: str
    cluster: str | None = None  # only legacy names have it

    def __str__(self) -> str:
        return f"{_SCHEME}{self.full_namespace}/{self.local_name}"

    @property
    def full_namespace(self) -> str:
        """tenant/namespace, or tenant/cluster/namespace of a legacy name."""
        parts = (self.tenant, self.cluster, self.namespace)
        return "/".join(part for part in parts if part is not None)

    @property
    def partition(self) -> int | None:
        match = _PARTITION.fullmatch(self.local_name)
        return None if match is None else int(match.group(2))

    @property
    def unpartitioned(self) -> TopicName:
        """The partitioned topic this is a partition of, or itself."""
        match = _PARTITION.fullmatch(self.local_name)
        local_name = self.local_name if match is None else match.group(1)
        return TopicName(
            tenant=self.tenant,
            cluster=self.cluster,
            namespace=self.namespace,
            local_name=local_name,
        )

    @property
    def managed_ledger_name(self) -> str:
        return f"{self.full_namespace}/{PERSISTENT}/{encode_name(self.local_name)}"


def encode_name(name: str) -> str:
    """Encode a local topic or subscription name as Java's URLEncoder does."""
    return quote_plus(name, safe="*").replace("~", "%7E")


def decode_name(encoded: str) -> str:
    """Undo encode_name. FormatError if the bytes are not UTF-8 or not in Java's spelling."""
    try:
        name = unquote_plus(encoded, errors="strict")
        spelled = encode_name(name)
    except UnicodeError as error:
        raise FormatError(f"not an encoded name: {encoded[:100]!r}") from error
    if spelled != encoded:
        raise FormatError(
            f"not an encoded name: expected {spelled[:100]!r}, found {encoded[:100]!r}"
        )
    return name


def with_scheme(name: str) -> str:
    """`persistent://tenant/namespace/topic` of what people write, with or without the scheme."""
    return name if "://" in name else f"persistent://{name}"


def parse_topic_name(name: str) -> TopicName:
    """Parse `persistent://tenant/namespace/local` or its legacy form; FormatError otherwise.

    As in Pulsar a fourth part makes a legacy name: a local name holding `/` can only be written
    in a managed-ledger name.
    """
    if not name.startswith(_SCHEME):
        raise FormatError(f"not a persistent topic: {name[:200]!r} (expected {_SCHEME}…)")
    parts = name.removeprefix(_SCHEME).split("/", 3)
    if len(parts) < 3 or not all(parts):
        raise FormatError(f"not a topic name: {name[:200]!r} (expected {_SCHEME}tenant/ns/topic)")
    cluster = parts[1] if len(parts) == 4 else None
    return TopicName(tenant=parts[0], cluster=cluster, namespace=parts[-2], local_name=parts[-1])


def parse_managed_ledger_name(ml_name: str) -> TopicName:
    """Parse `tenant/namespace/persistent/encoded`, or five parts of a legacy one."""
    parts = ml_name.split("/")
    if len(parts) not in (4, 5) or not all(parts) or parts[-2] != PERSISTENT:
        raise FormatError(
            f"not the managed ledger of a topic: {ml_name[:200]!r} "
            f"(expected tenant/namespace/{PERSISTENT}/name)"
        )
    cluster = parts[1] if len(parts) == 5 else None
    local_name = decode_name(parts[-1])
    return TopicName(tenant=parts[0], cluster=cluster, namespace=parts[-3], local_name=local_name)


def managed_ledger_path(ml_name: str) -> str:
    """Node path of a managed ledger; its children are the cursors."""
    return f"{MANAGED_LEDGERS_ROOT}/{ml_name}"


def never_touched(ml_name: str, properties: Mapping[str, str]) -> str | None:
    """Why tierkeeper leaves this managed ledger alone, or None for an ordinary user topic.

    `properties` are those of the managed ledger. A name that is not a topic's is left alone, too.
    """
    if SHADOW_SOURCE_PROPERTY in properties:
        return f"shadow topic of {properties[SHADOW_SOURCE_PROPERTY]}: its ledgers belong to that"
    try:
        topic = parse_managed_ledger_name(ml_name)
    except FormatError:
        return "not the managed ledger of a persistent topic"
    local_name = topic.unpartitioned.local_name
    if topic.tenant == "pulsar" and topic.namespace == "system" and topic.cluster is None:
        return "system topic: namespace pulsar/system"
    if _HOST_AND_PORT.fullmatch(topic.namespace):
        return "heartbeat or health-check topic of a broker"
    if topic.tenant in ("pulsar", "sla-monitor"):
        return f"system topic: tenant {topic.tenant}"
    if local_name.endswith(_PENDING_ACK_SUFFIXES):  # of a partition: that stands before the suffix
        return "pending-ack log of a transactional subscription"
    if local_name.startswith("__transaction_"):
        return "transaction log"
    if local_name.startswith("__") or local_name in _SYSTEM_LOCAL_NAMES:
        return f"system topic: {local_name}"
    if (topic.tenant, topic.namespace) == _FUNCTIONS_NAMESPACE or (
        topic.namespace == "functions" and local_name in _FUNCTIONS_LOCAL_NAMES
    ):
        return "functions worker topic"
    return None
