"""Which check an error of the offload is a finding of."""

import pytest

from tests.support.default_cluster import CLUSTER, INDEX_SUITE, READ_BACK_EQUAL
from tiering_assets.defs.shared.checks import disproved_by
from tiering_assets.resources import errors


@pytest.mark.parametrize(
    ("error", "check"),
    [
        (errors.ExpectationError("a block overlaps"), INDEX_SUITE),
        (errors.IntegrityError("entry 7 differs"), READ_BACK_EQUAL),
        (errors.FormatError("no magic word"), READ_BACK_EQUAL),
        (errors.BrokerError("no answer"), None),
        (errors.ObjectNotFoundError("no bucket"), None),
        (errors.RefusedError("a shadow topic"), None),
        (None, None),
    ],
)
def test_only_what_was_judged_is_a_finding_and_the_suite_has_its_own_check(error, check):
    assert disproved_by(CLUSTER, error) == check
