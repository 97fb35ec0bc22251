"""The checks as a job of their own: read certified ledgers again and report; nothing but damage is
written.

Owns: an evaluation is logged only for a ledger that was judged. An outage judges nothing and fails
the run by name instead. So does damage, by the run that finds it first: it is a record from then
on, and the check stays red.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import dagster as dg

from tiering_assets.defs.shared.batches import (
    LedgerBatch,
    batch_failure,
    chosen_ids,
    most_ledgers,
)
from tiering_assets.defs.shared.checks import (
    check_specs,
    read_back_evaluation,
    release_evaluation,
    suites_evaluation,
)
from tiering_assets.defs.shared.failures import as_failures
from tiering_assets.defs.shared.metadata import object_link, topic_text
from tiering_assets.defs.shared.names import ClusterNames
from tiering_assets.defs.shared.preview_api import outputs_of_checks
from tiering_assets.defs.shared.resources import TieringStack, narrate
from tiering_assets.defs.telling.batch_summary import NOTHING_DUE, tag_result
from tiering_assets.defs.telling.choose import telling
from tiering_assets.defs.telling.telling import Telling
from tiering_assets.ground.damage_advice import next_step

if TYPE_CHECKING:
    from tiering_assets.ground.stack import Stack

Context = dg.AssetCheckExecutionContext


class Judged(NamedTuple):
    """By ledger what is wrong and why it could not be judged; `known` of the bad were recorded
    before.
    """

    bad: dict[int, str]
    unjudged: dict[int, str]
    passed: int
    known: frozenset[int] = frozenset()
    ml_names: frozenset[str] = frozenset()


_NONE_CERTIFIED = "no ledger has a certificate; `tierkeeper topic backlog` says why"
_DESCRIPTION = (
    "Reads every byte of certified ledgers again. Records what is damaged, changes nothing else."
)


def define_verify_ledgers(cluster: ClusterNames) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(
        name="verify_ledgers",
        specs=check_specs(cluster),
        can_subset=True,
        pool=cluster.bookie_read_pool,
        description=_DESCRIPTION,
    )
    def verify_ledgers(
        context: Context, config: LedgerBatch, tiering_stack: TieringStack
    ) -> Iterator[dg.AssetCheckResult | dg.Output[None]]:
        with as_failures("verify"):
            yield from _verify(context, cluster, config, tiering_stack)

    return verify_ledgers


def _verify(
    context: Context, cluster: ClusterNames, config: LedgerBatch, tiering_stack: TieringStack
) -> Iterator[dg.AssetCheckResult | dg.Output[None]]:
    """Verify the given ledgers, or all certified ones up to the cap."""
    selected = context.selected_asset_check_keys
    unjudged: dict[int, str] = {}
    found: dict[int, str] = {}
    topics: set[str] = set()
    passed_at_all = failed_at_all = 0
    with (
        tiering_stack.connect(
            context, cluster, with_tasks=cluster.read_back_equal in selected
        ) as stack,
        telling(context, cluster, stack) as told,
    ):
        wanted = chosen_ids(context, cluster, config, stack) or _certified(
            stack, config, most=most_ledgers(cluster, config.max_ledgers)
        )
        for key, judge in (
            (cluster.read_back_equal, _read_back),
            (cluster.index_suite, _suites),
            (cluster.released_safely, _releases),
        ):
            if key not in selected:
                continue
            judged = judge(cluster, stack, told, wanted)
            unjudged |= judged.unjudged
            found |= {i: said for i, said in judged.bad.items() if i not in judged.known}
            passed_at_all += judged.passed
            failed_at_all += len(judged.bad)
            topics |= {*map(topic_text, judged.ml_names)}
    findings = [(failed_at_all, "checks failed"), (len(unjudged), "ledgers not judged")]
    said = [f"{n} {what}" for n, what in findings if n]
    if wanted:
        tag_result(context, ", ".join([*said, f"{passed_at_all} passed"]), topics)
    else:
        tag_result(context, NOTHING_DUE)
        narrate(context, f"{NOTHING_DUE}: {_NONE_CERTIFIED}")
    yield from outputs_of_checks(context, selected)  # what was found is told above
    if unjudged or found:
        raise batch_failure("verify", {**unjudged, **found}, done=passed_at_all, waiting={})


def _certified(stack: "Stack", config: LedgerBatch, *, most: int) -> list[int]:
    from tiering_assets.look.ledger.states import LedgerState
    from tiering_assets.look.ledger.survey import survey

    found = [
        view.ledger_id
        for view in survey(stack, config.ml_names())
        if view.offloaded_by == "tierkeeper" or view.state is LedgerState.VERIFIED
    ]
    return sorted(found)[:most]


def _read_back(
    cluster: ClusterNames, stack: "Stack", told: Telling, ledger_ids: list[int]
) -> Judged:
    from tiering_assets.verify.reverify import Reverified
    from tiering_assets.verify.verify_again import verify_again

    results = verify_again(stack, ledger_ids, source=True, found_by="verify")
    judged = {i: result for i, result in results.items() if isinstance(result, Reverified)}
    told.begin(list(judged))
    for ledger_id, found in judged.items():
        evaluation = read_back_evaluation(
            cluster,
            ledger_id,
            findings=found.findings,
            metadata={
                "topic": dg.MetadataValue.text(topic_text(found.ml_name)),
                "object": object_link(
                    cluster.console_url, stack.settings.store.bucket, found.data_key
                ),
                "object_bytes": dg.MetadataValue.int(found.bytes_read),
                "blocks": dg.MetadataValue.int(found.blocks),
                "compared_with_bookies": dg.MetadataValue.bool(found.with_source),
                "seconds": dg.MetadataValue.float(found.seconds),
                **({"notes": dg.MetadataValue.text("; ".join(found.notes))} if found.notes else {}),
            },
            said=f"{found.blocks} blocks, {found.bytes_read} bytes read back equal",
        )
        told.check(evaluation)
    bad = {
        i: f"damaged: {'; '.join(found.findings)}. {next_step(found.ml_name)}"
        for i, found in judged.items()
        if found.findings
    }
    return Judged(
        bad,
        _unjudged(results, judged),
        len(judged) - len(bad),
        frozenset(i for i in bad if not judged[i].new),
        frozenset(found.ml_name for found in judged.values()),
    )


def _suites(cluster: ClusterNames, stack: "Stack", told: Telling, ledger_ids: list[int]) -> Judged:
    from tiering_assets.records.models import SuiteResult
    from tiering_assets.verify.reverify import recheck_indexes

    results = recheck_indexes(stack, ledger_ids)
    judged = {i: result for i, result in results.items() if isinstance(result, SuiteResult)}
    told.begin(list(judged))
    for ledger_id, suite in judged.items():
        told.check(suites_evaluation(cluster.index_suite, ledger_id, [suite]))
    bad = {i: ", ".join(suite.failed) for i, suite in judged.items() if not suite.success}
    return Judged(bad, _unjudged(results, judged), len(judged) - len(bad))


def _releases(
    cluster: ClusterNames, stack: "Stack", told: Telling, ledger_ids: list[int]
) -> Judged:
    from tiering_assets.batch.release_batch import release_records

    bad: dict[int, str] = {}
    names: set[str] = set()
    passed = 0
    for ledger_id in ledger_ids:
        records = release_records(stack, ledger_id)
        if records is None:
            continue  # never released, so there is nothing to judge
        told.begin([ledger_id])
        faults = records.faults
        names.add(records.release.record.ml_name)
        evaluation = release_evaluation(
            cluster,
            ledger_id,
            faults,
            metadata={
                "topic": dg.MetadataValue.text(topic_text(records.release.record.ml_name)),
                "released_at": dg.MetadataValue.timestamp(records.release.record.released_at),
            },
        )
        told.check(evaluation)
        if faults:
            bad[ledger_id] = "; ".join(faults)
        else:
            passed += 1
    return Judged(bad, {}, passed, ml_names=frozenset(names))


def _unjudged(results: Mapping[int, object], judged: Mapping[int, object]) -> dict[int, str]:
    return {i: str(result) for i, result in results.items() if i not in judged}
