"""What people type is understood, or refused with what was expected; none of it becomes SQL."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tiering_assets.lineage.asked import (
    MessagePlace,
    is_of,
    parse_place,
    parse_span,
    parse_topic,
)
from tiering_assets.resources.sql import sql_text, sql_time


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("4711:250", MessagePlace(4711, 250)),
        (" 4711:250:7 ", MessagePlace(4711, 250, 7)),
        ("0:0:0", MessagePlace(0, 0, 0)),
        ("1:2:-1", MessagePlace(1, 2)),
    ],
)
def test_a_message_id_is_as_clients_print_it(text, place):
    assert parse_place(text) == place


def test_a_message_id_is_printed_as_it_is_asked():
    assert str(MessagePlace(4711, 250, 7)) == "4711:250:7"
    assert str(MessagePlace(4711, 250)) == "4711:250"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4711",
        "a:b",
        "1:2:3:4",
        "1:-2",
        "1:2:-2",
        f"{2**63}:0",
        "1:2 or 1=1",
        "\u0661:\u0662",
        "1:2;",
    ],
)
def test_what_is_no_message_id_is_refused(text):
    with pytest.raises(ValueError, match="expected LEDGER:ENTRY"):
        parse_place(text)


def at(*parts):
    return datetime(*parts).replace(tzinfo=UTC)  # noqa: DTZ001 - it has one


@pytest.mark.parametrize(
    ("first", "until", "begins", "ends"),
    [
        ("2026-11-25T13:19:21Z", None, at(2026, 11, 25, 13, 19, 21), at(2026, 11, 25, 13, 19, 21, 999999)),
        ("2026-11-25 13:19", None, at(2026, 11, 25, 13, 19), at(2026, 11, 25, 13, 19, 59, 999999)),
        ("2026-11-25", None, at(2026, 11, 25), at(2026, 11, 25, 23, 59, 59, 999999)),
        ("2026-11-25T13:19:21.5Z", None, at(2026, 11, 25, 13, 19, 21, 500000), at(2026, 11, 25, 13, 19, 21, 500000)),
        ("2026-11-25", "2026-11-26 01:00:00", at(2026, 11, 25), at(2026, 11, 26, 1, 0, 0, 999999)),
        ("2026-11-25T01:00:00+02:00", None, at(2026, 11, 24, 23), at(2026, 11, 24, 23, 0, 0, 999999)),
    ],
)  # fmt: skip
def test_a_time_is_meant_as_a_whole(first, until, begins, ends):
    span = parse_span(first, until)
    assert (span.first, span.last) == (begins, ends)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "13:19", "1' or '1'='1"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="is not a time"):
        parse_span(text, None)
    with pytest.raises(ValueError, match="is not a time"):
        parse_span("2026-11-25", text or " ")


def test_an_end_before_the_beginning_is_refused():
    with pytest.raises(ValueError, match="is before"):
        parse_span("2026-11-25", "2026-11-24")


def test_a_topic_is_known_with_or_without_its_scheme():
    assert parse_topic("t/ns/orders") == parse_topic("persistent://t/ns/orders")
    for other in ("orders", "non-persistent://t/ns/orders", ""):
        with pytest.raises(ValueError, match="not a"):
            parse_topic(other)


@pytest.mark.parametrize(
    ("ml_name", "belongs"),
    [
        ("t/ns/persistent/orders", True),
        ("t/ns/persistent/orders-partition-3", True),
        ("t/ns/persistent/orders-partition-x", False),
        ("t/ns/persistent/orders-partition-3-partition-1", False),
        ("t/ns/persistent/others", False),
        ("no name of a topic", False),
    ],
)
def test_partitions_are_of_their_topic(ml_name, belongs):
    assert is_of(ml_name, parse_topic("t/ns/orders")) is belongs


def test_text_and_times_of_sql():
    assert sql_text("it's") == "'it''s'"
    when = datetime(2026, 11, 25, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))
    assert sql_time(when) == "timestamp '2026-11-25T13:00:00.000005Z'"
