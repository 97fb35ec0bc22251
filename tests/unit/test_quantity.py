"""Durations and sizes: what is printed reads back as the same, and nothing else is read."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiering_assets.resources.quantity import (
    DURATION_EXPECTED,
    RATE_EXPECTED,
    SIZE_EXPECTED,
    QuantityError,
    duration_text,
    parse_duration,
    parse_rate,
    parse_size,
    rate_text,
    size_text,
)

MIB = 1024 * 1024
PARSERS = (parse_duration, parse_size, parse_rate)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("30 days", 30 * 86400),
        ("200ms", 0.2),
        ("4h", 4 * 3600),
        ("7d", 7 * 86400),
        ("2 weeks", 14 * 86400),
        ("1.5 h", 5400),
        ("1min", 60),
        (" 2.5 ", 2.5),
        ("600", 600),
        ("1e3", 1000),
        ("1_000", 1000),
        (".5s", 0.5),
        ("-1", -1),
    ],
)
def test_durations_as_people_write_them(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("64 MiB", 64 * MIB),
        ("1.5GiB", 1536 * MIB),
        ("100MB", 100_000_000),
        ("2 kB", 2000),
        ("2KB", 2000),
        ("2KiB", 2048),
        ("5242880", 5_242_880),
        ("1.1GiB", 1_181_116_006),
        ("12 B", 12),
        ("1_000", 1000),
    ],
)
def test_sizes_as_people_write_them(text, count):
    assert parse_size(text) == count
    assert parse_rate(f"{text}/s") == parse_rate(text) == count


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4 * 3600.0, "4 h"),
        (86400.0, "1 d"),
        (5400, "90 min"),
        (0.2, "200 ms"),
        (0.0, "0 s"),
        (2.5, "2500 ms"),
        (0.0001, "0.0001 s"),
        (1e300, "1e+300 s"),
    ],
)
def test_durations_are_printed_short(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (64 * MIB, "64 MiB"),
        (100_000_000, "100 MB"),
        (1536 * MIB, "1536 MiB"),
        (5_253_120, "5130 KiB"),
        (2**31 - 1, "2147483647 B"),
        (0, "0 B"),
        (1024**5, "1 PiB"),
    ],
)
def test_sizes_are_printed_short(count, text):
    assert size_text(count) == text
    assert rate_text(count) == f"{text}/s"


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.1 + 0.2)
@example(-0.0)
def test_a_printed_duration_reads_back_as_the_same(seconds):
    assert parse_duration(duration_text(seconds)) == seconds


@given(st.integers(-(10**6), 2**63) | st.integers(0, 10**5).map(lambda n: n * 1000 * MIB))
def test_a_printed_size_reads_back_as_the_same(count):
    assert parse_size(size_text(count)) == count
    assert parse_rate(rate_text(count)) == count


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "10 parsecs",
        "10M",
        "10Mb",
        "ten minutes",
        "1h30m",
        "1 000",
        "nan",
        "inf",
        "1e999",
        "1__0",
        "0x10",
        "\u0663",
        "1/s/s",
        "9" * 100,
    ],
)
def test_what_is_no_quantity_is_refused(parse, text):
    with pytest.raises(QuantityError, match=r"expected a \w+ such as"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (parse_duration, "64MiB", "expected a duration such as 200ms, 30s, 10m, 4h or 7d"),
        (parse_size, "10m", "expected a size such as 64MiB, 1.5GiB or 100MB"),
        (parse_size, "5MiB/s", "expected a size"),
        (parse_rate, "5MiB/min", "expected a rate such as 50MiB/s"),
        (parse_size, "1.5", "expected a size"),
        (parse_size, "1e3", "expected a size"),
        (parse_size, "0.5 B", "expected a size"),
        (parse_duration, "10m/s", "expected a duration"),
    ],
)
def test_another_quantity_is_refused_with_what_was_expected(parse, text, said):
    with pytest.raises(QuantityError, match=said):
        parse(text)


@given(st.text(max_size=80))
def test_any_text_is_a_finite_number_or_refused_without_being_quoted(text):
    for parse in PARSERS:
        try:
            found = parse(text)
        except QuantityError as error:
            said = str(error)
            assert said in (DURATION_EXPECTED, SIZE_EXPECTED, RATE_EXPECTED)
        else:
            assert found - found == 0
            assert any(letter.isdigit() for letter in text)
