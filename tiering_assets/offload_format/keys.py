"""Names of the objects of one offload attempt, and the user metadata both of them carry.

Owns: a key names the attempt's uuid and the ledger, nothing else, and parses back to exactly those.
Layout: Pulsar's DataBlockUtils. A broker reads an object only when its metadata says format
version `1`, and asks again on every ranged read of the data object. Metadata keys are lower case
here because S3 returns them so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple
from uuid import UUID

from tiering_assets.resources.errors import FormatError

FORMAT_VERSION_KEY: Final = "s3managedledgeroffloaderformatversion"
FORMAT_VERSION: Final = "1"
SOFTWARE_VERSION_KEY: Final = "s3managedledgeroffloadersoftwareversion"
SOFTWARE_GIT_SHA_KEY: Final = "s3managedledgeroffloadersoftwaregitsha"
SOFTWARE_GIT_SHA: Final = "tierkeeper"  # brokers write their build here; readers only carry it
ROLE_KEY: Final = "role"
ML_NAME_KEY: Final = "managedledgername"
CLUSTER_KEY: Final = "pulsarclustername"  # since Pulsar 4.0
INSTANCE_KEY: Final = "tierkeeperinstance"  # ours: ledger ids repeat across BookKeeper instances

_INDEX_SUFFIX: Final = "-index"
_LEDGER_ID_MAX: Final = 2**63 - 1
# The canonical forms only: a key that merely parses would not be the key that we would write.
_KEY: Final = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-ledger-(0|[1-9][0-9]{0,18})(-index)?"
)


class ObjectKey(NamedTuple):
    """What a V1 key says."""

    uid: UUID
    ledger_id: int
    is_index: bool


def data_key(uid: UUID, ledger_id: int) -> str:
    """Key of the data object. Raises ValueError for a negative ledger id."""
    if not 0 <= ledger_id <= _LEDGER_ID_MAX:
        raise ValueError(f"impossible ledger id {ledger_id}")
    return f"{uid}-ledger-{ledger_id}"


def index_key(uid: UUID, ledger_id: int) -> str:
    """Key of the index object. Raises ValueError for a negative ledger id."""
    return data_key(uid, ledger_id) + _INDEX_SUFFIX


def parse_key(key: str) -> ObjectKey | None:
    """What `key` names, or None when it is no V1 key (streaming objects and our records are
    not).
    """
    match = _KEY.fullmatch(key)
    if match is None or int(match[2]) > _LEDGER_ID_MAX:
        return None
    return ObjectKey(UUID(match[1]), int(match[2]), match[3] is not None)


def user_metadata(
    *,
    role: Literal["data", "index"],
    ml_name: str,
    software_version: str,
    git_sha: str = SOFTWARE_GIT_SHA,
    instance: str,
    cluster: str | None = None,
) -> dict[str, str]:
    """User metadata of one object; both objects of an attempt differ in `role` only.

    `ml_name` is the managed ledger's name in persistence encoding (`tenant/ns/persistent/topic`).

    Raises:
        ValueError: a value that an HTTP header cannot carry unchanged.
    """
    metadata = {
        FORMAT_VERSION_KEY: FORMAT_VERSION,
        SOFTWARE_VERSION_KEY: software_version,
        SOFTWARE_GIT_SHA_KEY: git_sha,
        ROLE_KEY: role,
        ML_NAME_KEY: ml_name,
        INSTANCE_KEY: instance,
    }
    if cluster is not None:
        metadata[CLUSTER_KEY] = cluster
    for name, value in metadata.items():
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise ValueError(f"user metadata {name}: {value!r} is not plain ASCII text")
    return metadata


def check_format_version(metadata: Mapping[str, str]) -> None:
    """Raise FormatError unless a broker would accept an object with this user metadata."""
    found = [value for name, value in metadata.items() if name.lower() == FORMAT_VERSION_KEY]
    if found != [FORMAT_VERSION]:
        said = ", ".join(map(repr, found)) or "nothing"
        raise FormatError(
            f"user metadata {FORMAT_VERSION_KEY}: expected {FORMAT_VERSION!r}, found {said};"
            " a broker refuses to read such an object"
        )
