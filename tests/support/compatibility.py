"""docs/compatibility.md, generated: `python -m tests.support.compatibility` writes it.

Owns: a ✓ names a test on real servers. Tests of `make test` are taken at their word, because it
runs them every time; those of tests/untame and tests/matrix count only as far as
docs/compatibility.json says that they passed. `--accept` first takes over what the last `make
compatibility` left in build/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.compatibility_record import RESULTS, read_results, write_results
from tiering_assets.resources.devstack.artifacts import DISTRIBUTIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
ACCEPTED = ROOT / "docs" / "compatibility.json"
RECORDED = ("tests/untame/", "tests/matrix/")
TRIED, EXPECTED, REFUSED = "✓", "◐", "✗"
_NOT_YET = "not tried yet"

_VERSIONS = "tests/matrix/test_versions.py"
_OURS = f"{_VERSIONS}::test_the_broker_reads_what_we_released"
_THEIRS = f"{_VERSIONS}::test_we_read_what_the_broker_offloaded_and_write_the_same_bytes"
_UNTAME = "tests/untame/test_untame.py"
_TWO = "tests/stack/test_two_brokers.py"
_STACK, _FAULT, _UNIT = "tests/stack", "tests/fault", "tests/unit"


@dataclass(frozen=True, slots=True)
class Row:
    """`sign` is what holds if every test does; `says` stands behind it."""

    what: str
    sign: str
    tests: tuple[str, ...] = ()
    says: str = ""


def rows() -> Iterator[tuple[str, tuple[Row, ...]]]:
    """Every table of the page: its heading and its rows."""
    yield "Pulsar releases", (*_releases(), *_PULSAR)
    yield "Formats and stores", _FORMATS
    yield "An untame cluster", _CLUSTER
    yield "Where it runs", _RUNS


def _releases() -> Iterator[Row]:
    for version in sorted(DISTRIBUTIONS, reverse=True):
        yield Row(
            f"Pulsar {version}: its broker reads what we released", TRIED, (f"{_OURS}[{version}]",)
        )
        yield Row(
            f"Pulsar {version}: we read what its broker offloaded, and write the same bytes",
            TRIED,
            (f"{_THEIRS}[{version}]",),
        )


_PULSAR = (Row("other Pulsar 3.x and 4.x", EXPECTED, says="same bytes, same metadata"),)
_FORMATS = (
    Row(
        "offload driver `aws-s3`",
        TRIED,
        (f"{_STACK}/test_interop.py::test_our_two_objects_equal_the_brokers_byte_for_byte",),
    ),
    Row("other jcloud drivers through an S3 API", EXPECTED),
    Row(
        "S3 server SeaweedFS 4.48",
        TRIED,
        (
            f"{_STACK}/test_path.py::test_sealed_ledgers_are_read_from_the_bucket_after_their_release",
        ),
    ),
    Row(
        "AWS S3",
        EXPECTED,
        says="`tierkeeper doctor` proves what it relies on before the first publish",
    ),
    Row(
        "metadata in ZooKeeper",
        TRIED,
        (f"{_STACK}/test_zookeeper.py::test_the_clusters_own_metadata_is_read",),
    ),
    Row(
        "metadata in Oxia, etcd, RocksDB",
        REFUSED,
        (
            f"{_UNIT}/metastore/test_store_uri.py::test_everything_else_is_refused_before_any_connection",
        ),
    ),
    Row(
        "ledgers with CRC32C, CRC32, HMAC, DUMMY digests",
        TRIED,
        (
            f"{_STACK}/test_interop.py::"
            "test_ledgers_of_every_digest_type_are_read_by_the_broker_after_their_release",
        ),
    ),
    Row(
        "ensemble changes inside a ledger",
        TRIED,
        (f"{_STACK}/test_interop.py::test_a_ledger_whose_ensemble_changed_while_it_was_written",),
    ),
    Row(
        "batch reads (BookKeeper ≥ 4.17) and single reads (older, or E > Qw)",
        TRIED,
        (
            f"{_STACK}/test_path.py::"
            "test_sealed_ledgers_are_read_from_the_bucket_after_their_release",
            f"{_STACK}/test_bookies.py::"
            "test_a_striped_ledger_is_read_although_a_bookie_lacks_a_third_of_it",
        ),
    ),
    Row(
        "managed-ledger node plain, LZ4, ZLIB, ZSTD, SNAPPY, read and written back",
        TRIED,
        (
            "tests/golden/test_metadata_golden.py::"
            "test_an_unedited_managed_ledger_is_written_back_as_it_was",
        ),
        "nodes that a real broker wrote",
    ),
    Row(
        "entries larger than a block, chunked messages",
        TRIED,
        (
            f"{_STACK}/test_interop.py::"
            "test_entries_larger_than_a_block_are_served_after_their_release",
        ),
        "the broker's own offloader truncates them",
    ),
    Row(
        "V2 (streaming) objects",
        REFUSED,
        (f"{_UNIT}/metastore/test_ledger_info.py::test_streaming_segments_are_left_alone",),
        "recognised and left alone",
    ),
    Row("TLS and authentication to bookies", REFUSED, says="not yet"),
)
_CLUSTER = (
    Row(
        "two brokers, load balancer on; a released topic moves between them",
        TRIED,
        (f"{_TWO}::test_a_released_topic_is_read_whichever_broker_serves_it_bookkeeper_first",),
    ),
    Row(
        "bookkeeper-first read priority",
        TRIED,
        (f"{_TWO}::test_a_released_topic_is_read_whichever_broker_serves_it_bookkeeper_first",),
    ),
    Row(
        "a broker and a namespace that both lack our offload driver",
        REFUSED,
        (
            f"{_TWO}::test_a_broker_that_skips_or_cannot_read_is_named_and_nothing_is_published",
            f"{_TWO}::test_nothing_is_released_once_a_broker_skips_or_cannot_read",
        ),
        "a topic may move to it, and it could not read our objects",
    ),
    Row(
        "`autoSkipNonRecoverableData` on at any broker",
        REFUSED,
        (
            f"{_TWO}::test_a_broker_that_skips_or_cannot_read_is_named_and_nothing_is_published",
            f"{_TWO}::test_nothing_is_released_once_a_broker_skips_or_cannot_read",
        ),
        "a passing read failure would lose a whole ledger",
    ),
    Row(
        "autorecovery on, eight bookies, E/Qw/Qa 3/2/2",
        TRIED,
        (f"{_UNTAME}::test_autorecovery_moves_a_published_ledger_which_is_then_released",),
    ),
    Row(
        "shared subscription with unacknowledged messages in flight",
        TRIED,
        (f"{_UNTAME}::test_unacknowledged_messages_of_a_shared_subscription_are_redelivered",),
    ),
    Row(
        "transactions, committed and aborted",
        TRIED,
        (f"{_UNTAME}::test_committed_and_aborted_transactions_stay_what_they_are",),
        "a topic with transactions since it was loaded is left alone until "
        "`disturb.transactions_max` is raised",
    ),
    Row(
        "delayed delivery",
        TRIED,
        (f"{_UNTAME}::test_delayed_messages_come_after_their_release_and_not_before_their_time",),
    ),
    Row(
        "6,000 ledgers in one topic, LZ4 metadata",
        TRIED,
        (f"{_UNTAME}::test_a_topic_of_six_thousand_ledgers_with_lz4_metadata",),
    ),
    Row(
        "sources of shadow topics: published",
        TRIED,
        (f"{_UNTAME}::test_a_source_with_a_shadow_keeps_its_bookie_copy_on_two_brokers",),
    ),
    Row(
        "sources of shadow topics: released",
        REFUSED,
        (
            f"{_STACK}/test_shadow_release.py::"
            "test_a_source_with_a_shadow_is_published_but_its_bookie_copy_stays",
        ),
        "shadows read bookies only ([decision 4](decisions/))",
    ),
    Row(
        "system topics, transaction logs, shadow topics",
        REFUSED,
        (
            f"{_FAULT}/test_topics_never_touched.py::"
            "test_a_shadow_topic_is_neither_published_nor_released",
            f"{_FAULT}/test_topics_never_touched.py::test_a_functions_topic_waits",
            f"{_FAULT}/test_topics_never_touched.py::test_the_topic_policies_of_a_namespace_wait",
        ),
        "never touched",
    ),
    Row(
        "no duplicates while a topic reloads",
        TRIED,
        (f"{_UNTAME}::test_producer_and_consumer_stay_through_publish_and_release",),
        "with Pulsar's message deduplication; without it a producer may send again, as after any "
        "unload",
    ),
)
_RUNS = (
    Row(
        "Spark `local[n,failures]`",
        TRIED,
        (
            f"{_STACK}/test_spark_path.py::test_spark_copies_from_bookies_what_the_broker_then_reads",
        ),
    ),
    Row(
        "Spark standalone cluster",
        TRIED,
        (
            f"{_STACK}/test_spark_cluster.py::test_standalone_survives_an_executor_killed_in_mid_part",
        ),
    ),
    Row(
        "Spark Connect",
        TRIED,
        (f"{_STACK}/test_spark_cluster.py::test_connect_with_shipped_code_copies_and_reads_back",),
    ),
    Row("Python 3.11", TRIED, says="the whole suite runs on it"),
    Row("Python 3.13", TRIED, says="by hand: the whole suite, on Debian 13 with Java 21"),
    Row("Python 3.12", EXPECTED),
    Row(
        "other Pythons",
        REFUSED,
        (f"{_UNIT}/devstack/test_prerequisites.py::test_another_python_is_a_sentence",),
    ),
    Row("Java 17", TRIED, says="the whole suite runs on it"),
    Row("Java 21", TRIED, says="by hand: the whole suite, on Debian 13 with Python 3.13"),
    Row(
        "other releases of Java",
        REFUSED,
        (f"{_UNIT}/devstack/test_prerequisites.py::test_another_java_is_named_and_refused",),
    ),
)


def page(results: Mapping[str, Any]) -> str:
    """The text of docs/compatibility.md for these results."""
    parts = [
        "# Compatibility\n",
        "<!-- Generated by `python -m tests.support.compatibility`; edits are lost. -->\n",
        f"{TRIED} tried by a test on real servers · {EXPECTED} expected, not tried · {REFUSED} refused by "
        f"name, before anything is lost\n",
        "Tests of releases and most of those of an untame cluster are run by `make compatibility`, "
        "and count as they\nlast came out ([compatibility.json](compatibility.json)). All others are part of "
        "`make test`. See [testing.md](testing.md).\n",
    ]
    for heading, table in rows():
        parts.append(f"## {heading}\n")
        lines = ["| | | how it is known |", "|---|---|---|"]
        lines += [_line(row, results["tests"]) for row in table]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(row: Row, tests: Mapping[str, Any]) -> str:
    sign, notes = row.sign, [row.says] if row.says else []
    recorded = [test for test in row.tests if test.startswith(RECORDED)]
    outcomes = {tests.get(test, {}).get("outcome") for test in recorded}
    if recorded and outcomes != {"passed"}:
        missing = None in outcomes
        sign, notes = EXPECTED, [*notes, _NOT_YET if missing else "its test did not pass"]
    elif recorded and row.tests[0].startswith(_VERSIONS):
        notes.append(_servers(tests[row.tests[0]].get("servers", {})))
    names = sorted({test.partition("::")[2].partition("[")[0] for test in row.tests})
    known = "; ".join([*notes, *(f"`{name}`" for name in names)])
    return f"| {row.what} | {sign} | {known} |"


def _servers(found: Mapping[str, str]) -> str:
    said = [
        f"BookKeeper {found.get('bookkeeper', '?')}",
        f"ZooKeeper {found.get('zookeeper', '?')}",
    ]
    if found.get("offloader") != found.get("pulsar"):
        said.append(f"offloader of {found.get('offloader', '?')}")
    return ", ".join(said)


def main() -> None:
    """Write the page; with --accept take over the last run's results first."""
    parser = argparse.ArgumentParser(description="write docs/compatibility.md")
    parser.add_argument("--accept", action="store_true", help="from build/compatibility.json")
    if parser.parse_args().accept:
        results = read_results(RESULTS)
        kept = {k: v for k, v in results["tests"].items() if k.startswith(RECORDED)}
        write_results(ACCEPTED, {**results, "tests": kept})
    PAGE.write_text(page(read_results(ACCEPTED)))
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
