"""The real daemon and its sensors: a topic is tiered and released with nothing done by hand.

The long form, with faults, is tests/support/soak.py.
"""

import json
import time

import pytest

from tests.support.soak_home import Home
from tiering_assets.ground.stack import open_stack
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import TopicSpec, consume_all, produce
from tiering_assets.resources.settings_sources import load_settings

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.timeout(1500)]

TIMEOUT_S = 900  # a minute when quiet; each run of Dagster takes far longer on a busy machine


@pytest.fixture
def stack(tmp_path):
    """Servers of its own: automation takes up whatever other tests have left behind."""
    with DevStack.start(tmp_path / "stack") as running:
        yield running


@pytest.fixture
def site(stack, tmp_path):
    """Settings under which every closed ledger is tiered, and a home for the daemon."""
    policy = tmp_path / "tiering.toml"
    policy.write_text("[default]\nmanagedLedgerOffloadThresholdInBytes = 0\n")
    config = tmp_path / "tierkeeper.toml"
    # Ticks every three seconds and a count each minute keep one of two cores busy.
    config.write_text("# a person's file\n[auto]\ninterval_s = 10\ndiscover_every_s = 900\n")
    environment = stack.environment() | {
        "TIERKEEPER_CONFIG": str(config),
        "TIERKEEPER_DAGSTER_RUNNER": "local",
        "TIERKEEPER_POLICY_FILE": str(policy),
        "TIERKEEPER_PUBLISH_PENDING_BYTES": "0",
        # Our own unload seals a third ledger. It goes out with the reload of the release, or
        # where it was copied too late for that, after this.
        "TIERKEEPER_PUBLISH_IDLE_TAIL_S": "5",
        "TIERKEEPER_RELEASE_DELETION_LAG_S": "5",
        "TIERKEEPER_RELEASE_FLEET_SHARE_MAX": "1",
    }
    home = Home(tmp_path / "home", environment)
    home.make()
    try:
        yield home, environment
    finally:
        home.stop()


def views_of(environment, ml_name):
    with open_stack(load_settings(environ=environment).settings) as stack:
        return [*survey(stack, [ml_name])]


def closed(environment, ml_name):
    return [v for v in views_of(environment, ml_name) if v.state is LedgerState.SEALED]


def wait_for(what, wanted, seconds=TIMEOUT_S):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"after {seconds} s still not {wanted}"
        time.sleep(3)  # each look is a process or a stack: seconds of a core


def status(home):
    done = home.run("auto", "status", "--json")
    return done.returncode, json.loads(done.stdout)


def test_switched_on_a_topic_is_tiered_and_released_by_itself(site, stack):
    home, environment = site
    endpoints = stack.endpoints
    spec = TopicSpec(topic="public/default/orders", messages=4500, payload_bytes=64)
    sent = produce(endpoints, spec)
    ml_name = "public/default/persistent/orders"
    wait_for(lambda: len(closed(environment, ml_name)) == 2, "rolled over by the broker")

    # Before the daemon: two processes that make Dagster's database at once spoil it.
    assert home.run("auto", "on", "--execute").returncode == 1
    home.start()
    wait_for(lambda: status(home)[0] == 0, "in the state that `auto status` wants")
    wait_for(
        lambda: all(
            view.state in (LedgerState.RELEASED, LedgerState.OPEN)
            for view in views_of(environment, ml_name)
        ),
        "released",
    )
    assert consume_all(endpoints, spec) == sent

    assert home.run("auto", "off").returncode == 0
    assert status(home)[0] == 0  # off is wanted, and nothing must run for it
    wait_for(
        lambda: home.run("auto", "on", "--execute").returncode == 0,  # a tick may meet the reload
        "switched on again",
    )
    assert status(home)[1]["wanted"] is True
