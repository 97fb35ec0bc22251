"""Write a topic's change, make its broker see it, and have it read. design sections 6.2 and 6.3.

Owns: one compare-and-set, one unload and one rehearsal for all that a topic is due, contexts to
publish and marks to set alike; and that a change which the broker cannot read is undone again.
Every edit starts from a fresh read of the same node (czxid), keeps what it does not know, and goes
out at most publish.read_to_write_max_s after that read, in the same session. A write whose answer
was lost is judged by reading again. Nothing here decides: publish.py and release.py have, and the
gates before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.change.confirm import NOT_LOADED, Noted, rehearse, reload_topic, waits_for_undo
from tiering_assets.change.disturb import Seen
from tiering_assets.change.topic_edit import (
    Copy,
    TopicChange,
    apply_change,
    is_applied,
    plan_publication,
    undo_change,
)
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Effect
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack, require_fresh
from tiering_assets.look.topic.bookies import why_not_reloadable
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.errors import RefusedError, TierkeeperError
from tiering_assets.resources.metastore.cas import EditResult, NodeEdit, Pace, edit_node
from tiering_assets.resources.metastore.ledger_info import (
    ManagedLedger,
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.metastore.offload_context import OffloadContext, driver_properties
from tiering_assets.resources.metastore.store import Node, VersionedPath
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

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
        NodeEdit(
            decide=edit_bytes,
            applied=lambda node: applied(decode_managed_ledger(node.data)),
            expected_czxid=czxid,
            guards=guards,
        ),
        Pace(
            read_to_write_max_s=stack.settings.publish.read_to_write_max_s,
            clock=stack.monotonic,
            sleep=stack.sleep,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The broker reads by the node's new version. `waiting` are contexts that the read forbade.

    `contexts` are those of the change as they stand in the node, by ledger.
    """

    edited: EditResult
    by: str
    waiting: Mapping[int, Wait]
    contexts: Mapping[int, OffloadContext]


def make_change(
    stack: Stack,
    ml_name: str,
    change: TopicChange,
    *,
    czxid: int,
    seen: Seen,
    evidence: Dated,
    rehearse_unloaded: bool = False,
) -> Confirmed | Wait:
    """Bring a change about and prove it; safe to run again after a crash anywhere.

    A topic that nobody has loaded is not loaded for a rehearsal, unless `rehearse_unloaded`. A Wait
    where the topic could not be loaded again: nothing was written, or what was is unconfirmed, and
    the next run goes on. Asked before the write, as a loaded topic reloads at its broker's next
    update, and again before the unload.

    Raises:
        RefusedError: the broker cannot read a ledger of the change; all of it was undone.
        MetadataConflictError: the node was deleted or made again, or others kept winning.
        StaleEvidenceError: what the change stands on is too old; nothing was written.
    """
    edit = _Edit(stack, ml_name, change, evidence)
    if rehearse_unloaded or seen.idle_version is None:
        short = why_not_reloadable(stack, ml_name, owner=seen.place.broker)
        if short is not None:
            return short
    edited = edit_topic(
        stack, ml_name, edit, czxid=czxid, applied=edit.is_applied, guards=edit.guards
    )
    waiting = edit.waiting
    going = change.without(waiting)
    _reach(ml_name, going, publish="publish.context_set", release="release.marked")
    if not going:
        return Confirmed(edited=edited, by=NOT_LOADED, waiting=waiting, contexts={})
    stack.tell(
        f"{topic_of(ml_name)}: {_counts_text(going)} in node version {edited.version}",
        topic=ml_name,
    )
    confirmed_by = (
        NOT_LOADED
        if seen.still_idle(edited)
        else reload_topic(stack, ml_name, why=_counts_text(going))
    )
    if isinstance(confirmed_by, Wait):
        return confirmed_by
    if confirmed_by != NOT_LOADED:
        _reach(ml_name, going, publish="publish.unloaded", release="release.unloaded")
    elif rehearse_unloaded:
        short = why_not_reloadable(stack, ml_name, owner=None)
        if short is not None:
            return short
    if confirmed_by != NOT_LOADED or rehearse_unloaded:
        _rehearse_or_undo(stack, ml_name, going, czxid=czxid)
    _reach(ml_name, going, publish="publish.confirmed", release="release.rehearsed")
    return Confirmed(edited=edited, by=confirmed_by, waiting=waiting, contexts=edit.standing)


class _Edit:
    """One change, applied to whatever a fresh read of the node shows; it may be called again.

    A broken context is only replaced while BookKeeper has the ledger: the write is one transaction
    with those nodes' versions, as the new context says that the bookies have it.
    """

    def __init__(self, stack: Stack, ml_name: str, change: TopicChange, evidence: Dated) -> None:
        self._stack, self._ml_name = stack, ml_name
        self._change, self._evidence = change, evidence
        self._contexts = contexts_for(stack, change.wanted)
        self._sources: dict[int, LedgerNode] = {}
        self.waiting: dict[int, Wait] = {}
        self.standing: dict[int, OffloadContext] = {}

    def __call__(self, topic_info: ManagedLedger) -> ManagedLedger | None:
        self._look(topic_info)
        edited = apply_change(topic_info, self._change.without(self.waiting), self._contexts)
        if edited is not None:
            self._require_fresh()
        return edited

    def is_applied(self, topic_info: ManagedLedger) -> bool:
        # While our answer was lost, another may have taken a ledger's place.
        self._look(topic_info)
        return is_applied(topic_info, self._change.without(self.waiting))

    def guards(self) -> list[VersionedPath]:
        return [VersionedPath(n.path, n.stat.version) for n in self._sources.values()]

    def _look(self, topic_info: ManagedLedger) -> None:
        change = self._change
        plan = plan_publication(topic_info, change.wanted, change.replacing)
        self.waiting = {**plan.waiting}
        self._sources = {}
        for ledger_id in plan.write:
            if ledger_id not in change.replacing:
                continue
            node = self._stack.ledgers.read(ledger_id)
            if node is None:
                gone = "BookKeeper has lost it since: its context stays as it is"
                self.waiting[ledger_id] = Wait(Reason.MISSING, gone)
            else:
                self._sources[ledger_id] = node
        self.standing = {i: self._contexts[i] for i in plan.write if i not in self.waiting}
        for ledger_id in plan.already:
            listed = topic_info.ledger(ledger_id)
            if listed is not None and listed.offload is not None:
                self.standing[ledger_id] = listed.offload

    def _require_fresh(self) -> None:
        change, what = self._change.without(self.waiting), topic_of(self._ml_name)
        if change.contexts:
            effect = Effect.HEAL if change.replacing else Effect.PUBLISH
            require_fresh(self._stack, effect, self._evidence, what=what)
        if change.marks:
            require_fresh(self._stack, Effect.MARK, self._evidence, what=what)


def _rehearse_or_undo(stack: Stack, ml_name: str, change: TopicChange, *, czxid: int) -> None:
    try:
        rehearse(stack, ml_name, change.last_entry_ids)
    except RefusedError as error:
        found = f"the broker cannot read it: {error}"
        waits = undo(stack, ml_name, change, czxid=czxid, why=found)
        readers = "readers are back on the bookies" if waits is None else f"{waits}"
        raise RefusedError(
            f"{error}; the change was taken back ({_counts_text(change)}), nothing was deleted, and "
            f"{readers}. Check the broker's offloader: driver, bucket, credentials and its log"
        ) from error


def undo(stack: Stack, ml_name: str, change: TopicChange, *, czxid: int, why: str) -> Wait | None:
    """Take our contexts and marks out of the node again and make the broker see it.

    It always writes. Its unload waits where the topic could not be loaded again: then the undo
    stays listed as unconfirmed, nothing of the topic is deleted, and the answer says why.

    What BookKeeper does not have any more stays as it is: another run was faster and deleted it,
    and the object is what readers have. The write holds only while the other ledgers are still
    there.
    """
    nodes: dict[int, LedgerNode] = {}
    why = f"taken back: {_counts_text(change)}: {why}"
    noted = Noted(stack, ml_name, change, czxid=czxid, why=why)

    def edit(info: ManagedLedger) -> ManagedLedger | None:
        nodes.clear()
        for ledger_id in change.last_entry_ids:
            node = stack.ledgers.read(ledger_id)
            if node is not None:
                nodes[ledger_id] = node
        return undo_change(info, change.only(nodes))

    edit_topic(
        stack,
        ml_name,
        edit,
        czxid=czxid,
        applied=lambda info: undo_change(info, change.only(nodes)) is None,
        guards=lambda: [VersionedPath(n.path, n.stat.version) for n in nodes.values()],
    )
    _reach(ml_name, change, publish="publish.context_removed", release="release.marks_removed")
    try:
        confirmed_by = reload_topic(stack, ml_name, why=why)
    except TierkeeperError:
        noted.stays()
        raise
    if isinstance(confirmed_by, Wait):
        noted.stays()
        return waits_for_undo([], str(confirmed_by))
    noted.confirm(by=confirmed_by)
    _reach(ml_name, change, publish="publish.withdrawn", release="release.unmarked")
    return None


def withdraw_standing(
    stack: Stack, ml_name: str, copies: Mapping[int, Copy], *, czxid: int, why: str
) -> None:
    """Take out those of these contexts that stand; nothing is touched where none does."""
    found = stack.topics.read(ml_name)
    standing = {
        i: copy
        for i, copy in copies.items()
        if found is not None
        and (listed := found[0].ledger(i)) is not None
        and listed.offload is not None
        and listed.offload.uid == copy.uid
    }
    if standing:
        undo(stack, ml_name, TopicChange(contexts=standing), czxid=czxid, why=why)


def contexts_for(stack: Stack, wanted: Mapping[int, UUID]) -> dict[int, OffloadContext]:
    """The complete contexts that name these attempts, written now."""
    store, driver = stack.settings.store, stack.settings.offload.driver
    properties = driver_properties(
        driver=driver, bucket=store.bucket, region=store.region, endpoint=store.endpoint
    )
    stamp = int(stack.now().timestamp() * 1000)
    return {
        ledger_id: OffloadContext(
            uid=uid,
            complete=True,
            timestamp_ms=stamp,
            driver_name=driver,
            properties=properties,
        )
        for ledger_id, uid in wanted.items()
    }


def _reach(ml_name: str, change: TopicChange, *, publish: str, release: str) -> None:
    if change.contexts:
        reach(publish, *change.contexts, topic=ml_name)
    if change.marks:
        reach(release, *change.marks, topic=ml_name)


def _counts_text(change: TopicChange) -> str:
    parts = ((len(change.contexts), "published"), (len(change.marks), "marked for release"))
    return " and ".join(f"{count} ledgers {what}" for count, what in parts if count)
