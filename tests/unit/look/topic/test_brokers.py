"""What one broker's configuration says of its offloader, and what it leaves open."""

import pytest

from tiering_assets.look.topic.publish_gate import BrokerSeen, broker_seen, skipping, without_driver


@pytest.mark.parametrize("said", ["", None])
def test_a_broker_without_a_driver_reads_no_objects_of_ours(said):
    config = {} if said is None else {"managedLedgerOffloadDriver": said}
    seen = broker_seen("b1:8080", config)
    assert seen == BrokerSeen(name="b1:8080", driver=None, skips=None)
    assert without_driver([seen], "aws-s3") == (seen,)
    assert skipping([seen]) == (seen,)


def test_a_broker_with_our_driver_that_does_not_skip_has_nothing_against_it():
    config = {"managedLedgerOffloadDriver": "AWS-S3", "autoSkipNonRecoverableData": "False"}
    seen = broker_seen("b1:8080", config)
    assert seen == BrokerSeen(name="b1:8080", driver="AWS-S3", skips=False)
    assert without_driver([seen], "aws-s3") == ()
    assert skipping([seen]) == ()
