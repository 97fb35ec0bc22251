"""Mistakes that we could have made: named replacements of our own functions, one rule broken each.

Owns the list that `make mutants` and the sample in tests/unit/simulation run. A mutant replaces
functions while its context is open and is told nothing of the simulator: the invariants have to
notice it. A replacement that names a function which is gone fails loudly, it does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from unittest.mock import patch

from tiering_assets.batch import pipeline
from tiering_assets.change import (
    change_topic,
    confirm,
    copies_now,
    publish,
    topic_change,
    topic_edit,
)
from tiering_assets.change import topic_change as node_edit
from tiering_assets.change import topic_edit as publication
from tiering_assets.clean import clean_up, leavings_evidence, leftovers, sweep
from tiering_assets.clean.deleting import Going, delete_leavings
from tiering_assets.clean.leavings_evidence import decide_leavings
from tiering_assets.clean.leftovers_rules import decide_leftover
from tiering_assets.clean.orphans import Sweep, decide_sweep
from tiering_assets.ground.evidence import NEEDS, Effect
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import asking
from tiering_assets.look.brakes.brake import Brakes
from tiering_assets.look.ledger import quarantine as outcome
from tiering_assets.look.ledger import survey
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome
from tiering_assets.records.stored import Stored
from tiering_assets.release import gate as release_gate
from tiering_assets.release import guarded_delete, release
from tiering_assets.release import look as release_look
from tiering_assets.release import work as release_finish
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.errors import MetadataConflictError, MetadataUnknownError
from tiering_assets.resources.metastore import cas
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.object_store.records import RecordStore
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.tasks import copy
from tiering_assets.tasks.block_body import encode_block
from tiering_assets.tasks.descriptors import TaskKind
from tiering_assets.verify import verify

Change = tuple[Any, str, Any]


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


# ----- copies


def _believe_the_copy(stack: Any, items: Any, found: Any) -> Any:
    """The rows of the copy, taken for rows of a read-back."""
    read = _read(stack, [item for item in items if item.source_rows is None], found)
    for item in items:
        if item.source_rows is None:
            continue
        record = item.attempt.record
        rows = list(item.source_rows.values())
        offsets = {block.part_number: block.offset for block in item.plan.blocks}
        back = [
            replace(
                row,
                kind=TaskKind.READ_BACK,
                header=stack.objects.get_range(
                    record.data_key, start=offsets[row.part_number], length=HEADER_BYTES
                ).hex(),
            )
            for row in rows
        ]
        read[str(record.uid)] = {TaskKind.READ_BACK: back, TaskKind.READ_SOURCE: rows}
    return read


_read = verify._read


class _Overwriting:
    """A store client whose creates overwrite."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, key: str, body: Any, **options: Any) -> Any:
        return self._store.put(key, body, **{**options, "if_absent": False})


def _put_anyway(task: Any, worker: Any, body: Any, digest: bytes) -> str:
    del digest
    return str(
        _Overwriting(worker.store).put(task.data_key, body, metadata=task.user_metadata).etag
    )


def _encode_without_last(block: Any, runs: Any, encoder: Any, core: Any) -> Any:
    entries = [
        (i, memoryview(bytes(payload)), length)
        for run in runs
        for i, payload, length in run.entries()
    ]
    kept = Run.of(entries[:-1] or entries)
    shorter = replace(block, last_entry_id=kept.entries()[-1][0], payload_bytes=kept.payload_bytes)
    return _encode_block(shorter, [kept], encoder, core)


_encode_block = encode_block


# ----- publishing


def _any_uid_is_ours(topic: Any, wanted: Mapping[int, Any], *rest: Any) -> Any:
    plan = _plan_publication(topic, wanted, *rest)
    other = [i for i, wait in plan.waiting.items() if wait.detail.startswith("by attempt")]
    waiting = {i: wait for i, wait in plan.waiting.items() if i not in other}
    return replace(plan, already=(*plan.already, *other), waiting=waiting)


_plan_publication = publication.plan_publication


def _either_outcome(stack: Any, after: Any, wanted: Any, *, reason: str) -> Any:
    won = _win_outcome(stack, after, wanted, reason=reason)
    if won is None:
        record = after.record
        key = keys.outcome(record.ledger.ledger_id, record.uid)
        return stack.book.require(Outcome, key)
    return won


_win_outcome = outcome.win_outcome


def _take_for_unloaded(stack: Any, ml_name: str, *, why: str) -> Any:
    place = stack.broker.locate(topic_of(ml_name))
    if place.load is not TopicLoad.LOADED:
        return confirm.NOT_LOADED
    return _reload_topic(stack, ml_name, why=why)


_reload_topic = confirm.reload_topic


def _write_over(store: Any, path: str, edit: Any, **options: Any) -> Any:
    """BadVersion? The same bytes again, with the version that is there now."""

    class Stubborn:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def set(self, path: str, data: bytes, *, expected_version: int, **options: Any) -> Any:
            try:
                return store.set(path, data, expected_version=expected_version, **options)
            except MetadataConflictError:
                version = store.get(path).stat.version
                return store.set(path, data, expected_version=version)

    return cas.edit_node(Stubborn(), path, edit, **options)


def _undo_any(topic: Any, change: Any) -> Any:
    message = topic.message_copy()
    touched = False
    for info in message.ledgerInfo:
        if info.ledgerId in change.contexts and info.HasField("offloadContext"):
            info.ClearField("offloadContext")
            touched = True
        if info.ledgerId in change.marks and info.offloadContext.bookkeeperDeleted:
            info.offloadContext.ClearField("bookkeeperDeleted")
            touched = True
    return topic.with_message(message) if touched else None


# ----- releasing


def _delete_one_by_one(
    stack: Any, ml_name: str, certified: Any, *, czxid: int, evidence: Any
) -> None:
    del evidence
    guarded_delete._look(stack, ml_name, certified, czxid)
    for ledger_id, (_uid, facts) in certified.items():
        found = guarded_delete._expect(stack, ledger_id, facts)
        stack.metadata.delete(found.path, expected_version=found.version)


_delete_ledgers = guarded_delete.delete_ledgers


def _delete_unknown_is_done(stack: Any, ml_name: str, certified: Any, **options: Any) -> None:
    try:
        _delete_ledgers(stack, ml_name, certified, **options)
    except MetadataUnknownError:
        return


def _without_marks(stack: Any, ml_name: str, change: Any, **options: Any) -> Any:
    return _make_change(stack, ml_name, replace(change, marks={}), **options)


_make_change = topic_change.make_change


def _complete_is_enough(topic: Any, ledger_id: int, uid: Any) -> bool:
    listed = topic.ledger(ledger_id)
    return bool(listed and listed.offload and listed.offload.complete and listed.offload.uid == uid)


class _Forgetful:
    """A book that says that it wrote."""

    def __init__(self, book: Any) -> None:
        self._book = book

    def __getattr__(self, name: str) -> Any:
        return getattr(self._book, name)

    def create_or_read(self, key: str, record: Any) -> Any:
        return Stored(key, record, "0" * 64, datetime.now(UTC), ""), True


def _intend_silently(stack: Any, *args: Any) -> Any:
    return _intend(replace(stack, book=_Forgetful(stack.book)), *args)


_intend = release._intend


def _lag_by_our_clock(**times: Any) -> bool:
    return bool(times["now"] - times["recorded_at"] > times["lag"])


def _lag_by_the_stores_clock(**times: Any) -> bool:
    return bool(times["store_now"] - times["stored_at"] > times["lag"])


def _no_lag(evidence: Any, uid: Any, lag: Any, now: Any) -> list[str]:
    return [r for r in _publication(evidence, uid, lag, now) if not r.startswith("deletion lag")]


_publication = release_gate._publication


# ----- clean-up and records


def _sweep_young(evidence: Any, *, guard_age: Any) -> Any:
    return decide_sweep(replace(evidence, claimed_live=False), guard_age=guard_age * 0)


def _sweep_anything(evidence: Any, *, guard_age: Any) -> Any:
    if evidence.store_now - evidence.attempt_stored_at <= guard_age:
        return decide_sweep(evidence, guard_age=guard_age)
    return Sweep(evidence.ledger_id, evidence.uid, True)


def _contexts_before_listing(stack: Any, **options: Any) -> Any:
    """Metadata first, listing after: what is published in between is not seen."""
    attempts = stack.book.iter_records(Attempt, "attempts/")
    known = {attempt.key: decide_leavings(stack, attempt) for attempt in attempts}

    def remembered(stack: Any, attempt: Any) -> Any:
        return known.get(attempt.key) or decide_leavings(stack, attempt)

    with (
        patch.object(sweep, "decide_leavings", remembered),
        patch.object(sweep, "decide_after_reading", remembered),
    ):
        return _sweep(stack, **{**options, "listing": None})


_sweep = sweep.sweep


def _say_it_is_written(*_args: Any, **_kwargs: Any) -> Any:
    return Stored("", None, "0" * 64, datetime.now(UTC), "")


def _sweep_objects_alone(stack: Any, leaving: Any) -> Any:
    return _sweep_one(stack, replace(leaving, uploads=()))


_sweep_one = sweep._sweep_one


def _no_broker_is_slow(evidence: Any, *, guard_age: Any) -> Any:
    return decide_leftover(evidence, guard_age=guard_age * 0)


def _delete_named(stack: Any, leaving: Any, intent: Any) -> Any:
    going = Going(
        ledger_id=leaving.pair[0],
        uid=leaving.pair[1],
        ml_name=leaving.ml_name,
        objects=leaving.objects,
        uploads=leaving.uploads,
        intent=intent.sha256,
        effect=Effect.SWEEP,
        evidence=asking(stack, *NEEDS[Effect.SWEEP]),
    )
    return replace(leaving, done=delete_leavings(stack, going))


def _unguarded(stack: Any, ml_name: str, edit: Any, **options: Any) -> Any:
    """Undoing reads no ledger and depends on none."""
    everywhere = patch.object(LedgerDirectory, "read", _always_there)

    def blind(info: Any) -> Any:
        with everywhere:
            return edit(info)

    return _edit_topic(stack, ml_name, blind, **{**options, "guards": tuple})


_read_ledger = LedgerDirectory.read


def _always_there(directory: Any, ledger_id: int) -> Any:
    return _read_ledger(directory, ledger_id) or object()


_edit_topic = node_edit.edit_topic


def _put_record(
    self: RecordStore,
    full: str,
    body: bytes,
    *,
    if_absent: bool = False,
    if_match: str | None = None,
) -> None:
    del if_absent
    self._store.put(full, body, if_match=if_match, content_type="application/json")


def _book_of_all(self: RecordBook, objects: Any, instance: str, *scribe: Any) -> None:
    del instance
    _open_book(self, objects, "shared", *scribe)


_open_book = RecordBook.__init__


def _lag(by: Callable[..., bool]) -> tuple[Change, ...]:
    return ((release_gate, "lag_elapsed", by), (survey, "lag_elapsed", by))


# fmt: off
MUTANTS: Final[Mapping[str, tuple[Change, ...]]] = {
    "the read-back is skipped": ((verify, "_read", _believe_the_copy),),
    "what was read back is not compared": (
        (verify, "_compare", _nothing),
    ),
    "a copy stops one entry early": ((copy, "encode_block", _encode_without_last),),
    "objects are written unconditionally": ((copy, "_put_whole", _put_anyway),),
    "uids are compared loosely when publishing": (
        (publish, "plan_publication", _any_uid_is_ours),
        (topic_change, "plan_publication", _any_uid_is_ours),
        (topic_edit, "plan_publication", _any_uid_is_ours),
    ),
    "a lost outcome is published": ((publish, "win_outcome", _either_outcome),),
    "a copy of an older run is never confirmed": ((pipeline, "find_certified", _nothing),),
    "no unload after the write": (
        (topic_change, "reload_topic", lambda *_args, **_kwargs: "unload acknowledged"),
    ),
    "an unknown topic is taken for unloaded": ((topic_change, "reload_topic", _take_for_unloaded),),
    "unloads leave no record": ((confirm, "record_disturbance", _nothing),),
    "BadVersion is ignored": ((node_edit, "edit_node", _write_over),),
    "undoing compares no uid": ((topic_change, "undo_change", _undo_any),),
    "the rehearsal is skipped": ((topic_change, "rehearse", _nothing),),
    "the lag is not waited for": ((release_gate, "_publication", _no_lag),),
    "the lag is taken from our clock alone": _lag(_lag_by_our_clock),
    "the lag is taken from the store's clock alone": _lag(_lag_by_the_stores_clock),
    "ledgers are deleted without the topic's version": (
        (release_finish, "delete_ledgers", _delete_one_by_one),
    ),
    "an unknown delete is taken for done": ((release_finish, "delete_ledgers", _delete_unknown_is_done),),
    "ledgers are deleted without a mark": (
        (change_topic, "make_change", _without_marks),
        (guarded_delete, "is_marked", _complete_is_enough),
    ),
    "no release intent": ((release, "_intend", _intend_silently),),
    "holds are ignored": ((Brakes, "why", _nothing),),
    "quarantines are ignored": (
        (release_look, "why_quarantined", _nothing),
        (copies_now, "why_quarantined", _nothing),
    ),
    "clean-up writes no outcome": ((sweep, "win_outcome", _say_it_is_written),),
    "clean-up reads metadata before it lists": ((clean_up, "sweep", _contexts_before_listing),),
    "clean-up knows no guard age": ((leavings_evidence, "decide_sweep", _sweep_young),),
    "clean-up takes what is published": ((leavings_evidence, "decide_sweep", _sweep_anything),),
    "clean-up forgets uploads": ((sweep, "_sweep_one", _sweep_objects_alone),),
    "a slow broker is taken for dead": ((leftovers, "decide_leftover", _no_broker_is_slow),),
    "what a broker left goes while the node names it": (
        (leftovers, "take_out_unfinished", _nothing),
        (leftovers, "_delete", _delete_named),
    ),
    "marks are taken back after the ledger went": ((topic_change, "edit_topic", _unguarded),),
    "records are overwritten": ((RecordStore, "_put", _put_record),),
    "two instances share their records": ((RecordBook, "__init__", _book_of_all),),
}
# fmt: on


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Our code with one mistake in it."""
    with ExitStack() as patches:
        for owner, attribute, change in MUTANTS[name]:
            patches.enter_context(patch.object(owner, attribute, change))
        yield


def mutate(name: str) -> None:
    """The same for the rest of this process."""
    for owner, attribute, change in MUTANTS[name]:
        setattr(owner, attribute, change)
