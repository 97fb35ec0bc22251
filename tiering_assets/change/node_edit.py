"""Compare-and-set edits of a managed-ledger node: contexts in, contexts out, marks on and off.

Owns: every edit starts from a fresh read of the same node (czxid), keeps what it does not know, and
goes out at most publish.read_to_write_max_s after that read, in the same session. A write whose
answer was lost is judged by reading again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from resources.errors import RefusedError
from resources.metastore.cas import EditResult, edit_node
from resources.metastore.ledger_info import (
    ManagedLedger,
    decode_managed_ledger,
    encode_managed_ledger,
)
from resources.metastore.store import Node, VersionedPath
from resources.metastore.topic_names import managed_ledger_path
from tiering_assets.ground.stack import Stack

ATTEMPTS_MAX = 5

Edit = Callable[[ManagedLedger], ManagedLedger | None]


def edit_topic(
    stack: Stack,
    ml_name: str,
    edit: Edit,
    *,
    czxid: int,
    applied: Callable[[ManagedLedger], bool],
    guards: Callable[[], Sequence[VersionedPath]] = tuple,
) -> EditResult:
    """Apply a pure edit; None from it means that nothing is left to do.

    Raises:
        MetadataConflictError: the node was deleted or made again, or others kept winning.
        RefusedError: the result would be larger than publish.node_bytes_max.
    """
    limit = stack.settings.publish.node_bytes_max

    def edit_bytes(node: Node) -> bytes | None:
        edited = edit(decode_managed_ledger(node.data))
        if edited is None:
            return None
        if edited.uncompressed_bytes > limit:
            raise RefusedError(
                f"{ml_name}: its managed-ledger node would hold {edited.uncompressed_bytes} bytes, "
                f"publish.node_bytes_max is {limit}; trim the topic or raise the setting, and the "
                f"store's node limit with it"
            )
        return encode_managed_ledger(edited)

    return edit_node(
        stack.metadata,
        managed_ledger_path(ml_name),
        edit_bytes,
        expected_czxid=czxid,
        applied=lambda node: applied(decode_managed_ledger(node.data)),
        guards=guards,
        read_to_write_max_s=stack.settings.publish.read_to_write_max_s,
        attempts=ATTEMPTS_MAX,
        clock=stack.monotonic,
        sleep=stack.sleep,
    )
