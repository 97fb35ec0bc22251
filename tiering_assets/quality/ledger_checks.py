"""The expectations that every ledger must meet before its release, as two tables.

Coverage: the topic's list, its contexts, publications and blocks name each ledger and entry once,
with no gap and no overlap. Certificate: the chain of records, the objects and the dates agree with
what was certified. Each check has a damage that it alone reports, among the index checks, too; a
unit test holds one such damage per line. A value that is not there fails its check; only the
managed ledger's counts may be missing.

Pure: rendering and digests need neither Great Expectations nor pandas.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tiering_assets.quality.checks import (
    Above,
    Check,
    Equal,
    OneOf,
    at_least,
    digest_of,
    once,
    rendered,
)

COVERAGE_SUITE: Final = "topic_coverage/2"
CERTIFICATE_SUITE: Final = "certificates/2"


def _just(value: str | int | bool) -> OneOf:
    return OneOf((value,), never_missing=True)


# fmt: off
COVERAGE_CHECKS: Final[tuple[Check, ...]] = (
    # The list by itself and against what was published.
    once("listed_once", "times_listed", _just(1), "times that the topic lists the ledger"),
    once("list_ascends", "ledger_id", Above(other="previous_listed"), "ledger id after the one before in the topic's list"),
    once("listed_closed", "listed_closed", _just(True), "whether the topic has closed the ledger"),
    once("no_ledger_lost", "unlisted_before", _just(""), "published ledgers that the topic's list lacks right before this one"),
    once("listed_entries", "certified_entries", at_least("listed_entries", optional=True), "certified entries for those the topic counts"),
    once("listed_bytes", "certified_ledger_bytes", at_least("listed_bytes", optional=True), "certified ledger length for the bytes the topic counts"),
    # The context.
    once("context_attempt", "context_uid", Equal("certified_uid"), "attempt in the offload context"),
    once("context_complete", "context_complete", _just(True), "whether the offload context is complete"),
    once("context_bucket", "context_bucket", Equal("certified_bucket"), "bucket in the offload context"),
    once("attempt_not_shared", "ledgers_of_attempt", _just(1), "ledgers of the topic whose context names this attempt"),
    once("published_once", "times_published", _just(1), "times that the publication names the ledger"),
    # BookKeeper's node, and the entries that blocks cover.
    once("node_last_entry_id", "node_last_entry_id", Equal("certified_last_entry_id"), "last entry id in BookKeeper"),
    once("node_length", "node_bytes", Equal("certified_ledger_bytes"), "ledger length in BookKeeper"),
    once("node_identity", "node_identity", Equal("certified_identity"), "digest type, creation time and czxid in BookKeeper"),
    once("no_entry_missing", "entries_missing", _just(0), "entries that no block covers"),
    once("no_entry_twice", "entries_twice", _just(0), "entries that two blocks cover"),
    once("no_entry_beyond", "entries_beyond", _just(0), "entries that blocks cover behind the ledger's last"),
)

CERTIFICATE_CHECKS: Final[tuple[Check, ...]] = (
    # The certificate by itself.
    once("certified_ledger_id", "certified_ledger_id", Equal("ledger_id"), "ledger id in the certificate"),
    once("certified_topic", "certified_topic", Equal("topic"), "topic in the certificate"),
    once("certified_entries", "certified_entries", Equal("certified_ledger_entries"), "certified entries"),
    once("certified_payload", "certified_ledger_bytes", at_least("certified_payload_bytes"), "certified ledger length for the payload bytes"),
    once("blocks_payload", "blocks_payload_bytes", Equal("certified_payload_bytes"), "payload bytes of the certified blocks summed"),
    once("blocks_length", "blocks_bytes", Equal("certified_data_bytes"), "lengths of the certified blocks summed"),
    once("digests_present", "digests_missing", _just(0), "digests that the certificate lacks"),
    once("data_digest", "certified_data_sha256", Equal("blocks_sha256"), "data digest in the certificate"),
    once("suites_passed", "suites_failed", _just(""), "suites that had failed when it was certified"),
    # Against the attempt that it closes.
    once("attempt_ledger", "attempt_ledger", Equal("certified_ledger"), "ledger in the attempt's record"),
    once("attempt_uid", "attempt_uid", Equal("certified_uid"), "attempt in the attempt's record"),
    once("attempt_topic", "attempt_topic", Equal("topic"), "topic in the attempt's record"),
    once("attempt_bucket", "attempt_bucket", Equal("certified_bucket"), "bucket in the attempt's record"),
    once("attempt_data_key", "attempt_data_key", Equal("certified_data_key"), "data key in the attempt's record"),
    once("attempt_index_key", "attempt_index_key", Equal("certified_index_key"), "index key in the attempt's record"),
    once("attempt_size", "attempt_data_bytes", Equal("certified_data_bytes"), "data size that the attempt planned"),
    once("attempt_blocks", "attempt_blocks", Equal("blocks"), "blocks that the attempt planned"),
    # The chain of digests.
    once("chain_attempt", "certified_previous", Equal("attempt_sha256"), "digest of the attempt's record in the certificate"),
    once("chain_certificate", "outcome_previous", Equal("certificate_sha256"), "digest of the certificate in the outcome"),
    once("chain_outcome", "published_previous", Equal("outcome_sha256"), "digest of the outcome in the publication"),
    once("chain_publication", "published_certificate", Equal("certificate_sha256"), "digest of the certificate in the publication"),
    once("outcome", "outcome", _just("publish"), "outcome of the attempt"),
    once("outcome_uid", "outcome_uid", Equal("certified_uid"), "attempt in the outcome"),
    once("published_topic", "published_topic", Equal("topic"), "topic in the publication"),
    # The objects now.
    once("data_size", "data_bytes", Equal("certified_data_bytes"), "data size by HEAD"),
    once("data_etag", "data_etag", Equal("certified_data_etag"), "ETag of the data object"),
    once("data_version", "data_version", Equal("certified_data_version"), "version of the data object"),
    once("certified_index_size", "index_bytes", Equal("certified_index_bytes"), "certified index size by HEAD"),
    once("index_etag", "index_etag", Equal("certified_index_etag"), "ETag of the index object"),
    once("index_version", "index_version", Equal("certified_index_version"), "version of the index object"),
    once("index_digest", "index_sha256", Equal("certified_index_sha256"), "digest of the index object's bytes"),
    # The dates, in order by one clock at least.
    once("verified_after_start", "verified_after_ms", at_least("after_least_ms"), "milliseconds from the attempt's start to its verification"),
    once("published_after_verified", "published_after_ms", at_least("after_least_ms"), "milliseconds from the verification to the publication"),
    once("published_in_past", "store_latest_ms", at_least("published_ms"), "the store's clock after the publication"),
)
# fmt: on

LEDGER_SUITES: Final = {COVERAGE_SUITE: COVERAGE_CHECKS, CERTIFICATE_SUITE: CERTIFICATE_CHECKS}
LEDGER_CHECKS: Final = (*COVERAGE_CHECKS, *CERTIFICATE_CHECKS)
LEDGER_CHECKS_BY_NAME: Final = {check.name: check for check in LEDGER_CHECKS}


def ledger_suites_json() -> dict[str, Any]:
    """Both tables in one Great Expectations suite, for one validation."""
    return rendered("ledgers", LEDGER_CHECKS)


@cache
def ledger_suite_digest(name: str) -> str:
    """SHA-256 of one table's suite as canonical JSON."""
    return digest_of(rendered(name, LEDGER_SUITES[name]))
