"""SIGKILL between two steps: a sample of the crash matrix, which dies at every crash point.

What a publication, a release and a sweep have just done; simulated schedules die at each effect.

The kills, runs and audits are those of `make crash-matrix`; docs/crash-points.md says what each
point leaves and who finishes it.
"""

from __future__ import annotations

import pytest

from tests.support.crash_cases import CASES
from tests.support.crash_matrix import run_case
from tests.support.crash_scene import Shop
from tests.support.crash_subject import Workshop
from tests.support.http_proxy import HttpProxy

pytestmark = [pytest.mark.stack, pytest.mark.fault]

SAMPLE = (
    "publish.context_set of plain",
    "release.deleted of release",
    "sweep.deleted of sweep",
)


@pytest.fixture(scope="module")
def shop(lab, crash_driver, tmp_path_factory):
    with HttpProxy(lab.endpoints.s3_endpoint) as proxy:
        yield Shop(Workshop(lab, proxy), crash_driver, tmp_path_factory.mktemp("crashes"))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_process_killed_and_run_again_leaves_no_anomaly(shop, name):
    [case] = [case for case in CASES if case.name == name]
    result = run_case(shop, case)
    assert (result.kills, result.anomalies) == (1, [])
