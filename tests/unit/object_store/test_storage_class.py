"""The one table of storage classes, against the names that S3's own client knows."""

import botocore.session
import pytest

from tiering_assets.resources.object_store.storage_class import CLASSES, class_reads

# No class that a rule moves an object of ours to: unknown, so asked by reading.
ELSEWHERE = {
    "AWS_BACKUP_LOW_COST_WARM",
    "AWS_BACKUP_WARM",
    "FSX_ONTAP",
    "FSX_OPENZFS",
    "OUTPOSTS",
    "SNOW",
}


def test_every_class_that_the_client_knows_is_in_the_table():
    model = botocore.session.get_session().get_service_model("s3")
    known = set(model.shape_for("StorageClass").metadata["enum"])
    assert known == (set(CLASSES) - {""}) | ELSEWHERE


@pytest.mark.parametrize("name", [None, "", "STANDARD", "GLACIER_IR", "INTELLIGENT_TIERING"])
def test_these_answer_at_once(name):
    assert class_reads(name) is True


@pytest.mark.parametrize("name", ["GLACIER", "DEEP_ARCHIVE"])
def test_these_answer_after_a_restore(name):
    assert class_reads(name) is False


@pytest.mark.parametrize("name", ["WARM-TIER", "CLOUDTIER", "glacier"])
def test_another_name_says_nothing(name):
    assert class_reads(name) is None
