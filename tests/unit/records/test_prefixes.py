"""What is listed of one ledger, topic or attempt is of no other, whose name only begins the
same.
"""

from uuid import UUID

import pytest

from tiering_assets.records import keys

UID = UUID(int=7)


@pytest.mark.parametrize(
    ("prefix", "key"),
    [
        (keys.attempts_of, keys.attempt),
        (keys.certificates_of, keys.certificate),
        (keys.releases_of, keys.release),
        (keys.releases_of, keys.release_intent),
    ],
)
def test_a_ledgers_records_are_under_its_own_prefix_alone(prefix, key):
    assert key(1, UID).startswith(prefix(1))
    assert not key(12, UID).startswith(prefix(1))
    assert not key(1, UID).startswith(prefix(12))
