"""Times of a store mean what the client library's own parser takes them for."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from botocore.utils import parse_timestamp
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.object_store.s3_client import time_in

SECONDS = st.integers(0, 7_000_000_000).map(lambda at: datetime.fromtimestamp(at, UTC))


@given(SECONDS, st.integers(0, 9))
def test_a_time_of_a_listing_or_a_header_is_what_the_library_takes_it_for(at, digits):
    fraction = f".{'123456789'[:digits]}" if digits else ""
    listed = f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"
    assert time_in(listed) == parse_timestamp(listed)
    header = format_datetime(at, usegmt=True)
    assert time_in(header) == parse_timestamp(header) == at


@pytest.mark.parametrize(
    "text", ["2026-11-27T01:02:03+02:00", "20261127T010203Z", "Fri, 27 Nov 2026 01:02:03 +0200", 7]
)
def test_so_is_any_other_time(text):
    assert time_in(text) == parse_timestamp(text)


@pytest.mark.parametrize("text", ["", "Z", "yesterday", "2026-13-27T01:02:03Z", None])
def test_what_is_no_time_is_refused_as_the_library_does(text):
    with pytest.raises(ValueError, match=r"timestamp|month|Invalid"):
        parse_timestamp(text)
    with pytest.raises(ValueError, match=r"timestamp|month|Invalid"):
        time_in(text)
