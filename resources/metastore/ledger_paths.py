"""Where a ledger's node lies below the ledgers root, and back.

Owns: path and id are inverse for every layout. The rule comes from BookKeeper's ledger manager
factories and StringUtils; a node name that fits no rule is not a ledger (None), a LAYOUT that names
an unknown manager is refused, because "no such ledger" read at a wrong path would be a lie.
"""

from __future__ import annotations

import re
from enum import Enum

from tiering_assets.resources.errors import FormatError

# HierarchicalLedgerManager: this id and above use the long form.
LONG_IDS_FROM = 2**31 - 1
LEDGER_ID_MAX = 2**63 - 1
_SHORT_IDS_END = 10**10  # ten digits; the legacy layout has no room for more
_SHORT = re.compile(r"([0-9]{2})/([0-9]{4})/L([0-9]{4})", re.ASCII)
_LONG = re.compile(r"([0-9]{3})/([0-9]{4})/([0-9]{4})/([0-9]{4})/L([0-9]{4})", re.ASCII)
_FLAT = re.compile(r"L([0-9]{10})", re.ASCII)


class LedgerLayout(Enum):
    """Values are the names in LAYOUT files of format version 1 and in service URIs."""

    FLAT = "flat"
    LEGACY_HIERARCHICAL = "legacyhierarchical"
    HIERARCHICAL = "hierarchical"
    LONG_HIERARCHICAL = "longhierarchical"


_BY_CLASS = {
    "FlatLedgerManagerFactory": LedgerLayout.FLAT,
    "LegacyHierarchicalLedgerManagerFactory": LedgerLayout.LEGACY_HIERARCHICAL,
    "HierarchicalLedgerManagerFactory": LedgerLayout.HIERARCHICAL,
    "LongHierarchicalLedgerManagerFactory": LedgerLayout.LONG_HIERARCHICAL,
}
_BOOKKEEPER_PACKAGE = "org.apache.bookkeeper.meta"
_PULSAR_PREFIX = "org.apache.pulsar."  # its own driver uses the hierarchical arithmetic


def decode_layout(data: bytes) -> LedgerLayout:
    """Decode the LAYOUT node: a format version and `<factory class>:<version>`.

    Raises:
        FormatError: not such text, or a manager whose paths are not known here.
    """
    try:
        lines = data.decode("ascii").strip().split("\n")
    except UnicodeDecodeError as error:
        raise FormatError("LAYOUT is not text") from error
    if len(lines) != 2 or lines[0].strip() not in ("1", "2"):
        raise FormatError(f"LAYOUT: expected version 1 or 2 and a second line, found {lines[:3]}")
    name = lines[1].strip().partition(":")[0]
    package, _, class_name = name.rpartition(".")
    if lines[0].strip() == "1" and name in {layout.value for layout in LedgerLayout}:
        return LedgerLayout(name)
    if package == _BOOKKEEPER_PACKAGE and class_name in _BY_CLASS:
        return _BY_CLASS[class_name]
    if name.startswith(_PULSAR_PREFIX):
        return LedgerLayout.HIERARCHICAL
    raise FormatError(f"LAYOUT names {name[:100]!r}, whose ledger paths are not known")


def ledger_path(ledgers_root: str, ledger_id: int, layout: LedgerLayout) -> str:
    """Absolute path of a ledger's node. ValueError where the layout has no path for the id."""
    return f"{ledgers_root.rstrip('/')}/{_relative(ledger_id, layout)}"


def ledger_id_at(ledgers_root: str, path: str, layout: LedgerLayout) -> int | None:
    """The ledger id of a path, or None when BookKeeper would not store a ledger there."""
    prefix = ledgers_root.rstrip("/") + "/"
    if not path.startswith(prefix):
        return None
    relative = path.removeprefix(prefix)
    match = (_FLAT if layout is LedgerLayout.FLAT else _SHORT).fullmatch(relative)
    if match is None:
        match = _LONG.fullmatch(relative)
    if match is None:
        return None
    ledger_id = int("".join(match.groups()))
    try:  # only the one path that the layout gives this id counts
        return ledger_id if _relative(ledger_id, layout) == relative else None
    except ValueError:
        return None


def _relative(ledger_id: int, layout: LedgerLayout) -> str:
    if not 0 <= ledger_id <= LEDGER_ID_MAX:
        raise ValueError(f"not a ledger id: {ledger_id}")
    long_form = layout is LedgerLayout.LONG_HIERARCHICAL or (
        layout is LedgerLayout.HIERARCHICAL and ledger_id >= LONG_IDS_FROM
    )
    if long_form:
        digits = f"{ledger_id:019d}"
        return f"{digits[:3]}/{digits[3:7]}/{digits[7:11]}/{digits[11:15]}/L{digits[15:]}"
    if ledger_id >= _SHORT_IDS_END:
        raise ValueError(f"the {layout.value} layout has no path for ledger {ledger_id}")
    digits = f"{ledger_id:010d}"
    if layout is LedgerLayout.FLAT:
        return f"L{digits}"
    return f"{digits[:2]}/{digits[2:6]}/L{digits[6:]}"
