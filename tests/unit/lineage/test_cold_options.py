"""Options of a reader of cold messages: what is meant, and what cannot be."""

import pytest

from tiering_assets.lineage.asked import USUAL, is_like, parse_span
from tiering_assets.lineage.messages.options import cold_options

TOPIC = {"topic": "public/default/orders"}


def test_without_a_time_all_of_them_are_meant():
    asked = cold_options(TOPIC)
    assert (asked.topic, asked.ledgers, asked.messages.span) == (TOPIC["topic"], (), None)
    assert asked.schema.names == ["topic", "partition", *USUAL.split(",")]
    assert cold_options({"LEDGER": "7, 12"}).ledgers == (7, 12)


def test_a_time_without_an_end_goes_on():
    span = cold_options({**TOPIC, "from": "2026-11-25"}).messages.span
    assert span is not None
    assert span.first == parse_span("2026-11-25", None).first
    assert span.last.year == 2260
    assert cold_options({**TOPIC, "until": "2026-11-25"}).messages.span is not None


def test_filters_leave_out_blocks_where_that_is_asked_and_a_stream_begins_with_the_oldest():
    asked = cold_options(TOPIC)
    assert (asked.filters, asked.start, asked.ledgers_per_batch) == (False, "oldest", 1000)
    given = {**TOPIC, "filters": "True", "start": "newest", "ledgers_per_batch": "7"}
    asked = cold_options(given)
    assert (asked.filters, asked.start, asked.ledgers_per_batch) == (True, "newest", 7)


def test_a_time_leaves_out_blocks_of_a_stream_as_well():
    assert cold_options(TOPIC).of_time == ()
    span = parse_span("2026-11-25", None)
    said = [
        (one.column, one.how, one.value)
        for one in cold_options({**TOPIC, "from": "2026-11-25", "until": "2026-11-25"}).of_time
    ]
    assert said == [("publish_time", ">=", span.first), ("publish_time", "<=", span.last)]


def test_columns_are_those_that_are_named_and_errors_where_they_are_rows():
    asked = cold_options({**TOPIC, "columns": "key, payload", "on_error": "row", "verify": "True"})
    assert asked.schema.names == ["key", "payload", "error"]
    assert (asked.messages.verify, asked.messages.pieces) == (True, False)
    assert cold_options({**TOPIC, "columns": "all"}).schema.names[-1] == "error"
    assert asked.with_columns(["entry_id"]).schema.names == ["entry_id"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "an option `topic`, or `ledger`"),
        ({**TOPIC, "ledger": "7"}, "an option `topic`, or `ledger`"),
        ({"ledger": "seven"}, "'seven' is not an id"),
        ({"topic": "orders"}, "orders"),
        ({**TOPIC, "topics": "x"}, "no option: topics; there are topic, "),
        ({**TOPIC, "from": "yesterday"}, "is not a time"),
        ({**TOPIC, "columns": "payloads"}, "no column of a message: payloads"),
        ({**TOPIC, "verify": "yes"}, "verify is 'yes': expected true or false"),
        ({**TOPIC, "on_error": "skip"}, "on_error is 'skip': expected fail or row"),
        ({**TOPIC, "filters": "no"}, "filters is 'no': expected true or false"),
        ({**TOPIC, "transactions": "none"}, "transactions is 'none': expected all or committed"),
        ({**TOPIC, "start": "now"}, "start is 'now': expected oldest or newest"),
        ({**TOPIC, "ledgers_per_batch": "0"}, "ledgers_per_batch is '0': expected a number"),
        ({**TOPIC, "ledgers_per_batch": "all"}, "ledgers_per_batch is 'all': expected a number"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, why):
    with pytest.raises(ValueError, match=why):
        cold_options(options)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("public/default/a*", True),
        ("persistent://public/default/a?c", True),
        ("public/default/[ab]bc", True),
        ("public/*/abc-partition-1", True),
        ("public/default/b*", False),
    ],
)
def test_a_pattern_means_topics_and_their_partitions(pattern, matches):
    assert is_like("public/default/persistent/abc-partition-1", pattern) is matches
    assert not is_like("no/topic", pattern)
