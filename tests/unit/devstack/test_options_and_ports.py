import random
import socket

import pytest

from tiering_assets.resources.devstack.options import S3_PORT_NAMES, StackOptions
from tiering_assets.resources.devstack.ports import GRPC_OFFSET, choose_ports
from tiering_assets.resources.errors import PrerequisiteError, SettingsError


def test_servers_start_in_the_order_in_which_they_need_each_other():
    assert StackOptions(bookies=2).server_names() == (
        "s3",
        "zookeeper",
        "bookie1",
        "bookie2",
        "broker",
    )


def test_more_brokers_have_names_and_ports_of_their_own():
    options = StackOptions(bookies=1, brokers=2)
    assert options.server_names() == ("s3", "zookeeper", "bookie1", "broker", "broker2")
    assert {"broker", "broker.web", "broker2", "broker2.web"} < set(options.port_names())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"brokers": 0}, "with_broker=False means none"),
        ({"pulsar_version": "4.0.7"}, "not pinned; known: 3.3.6, 4.0.4, 4.0.8"),
        ({"one_broker_conf": {"broker2": {}}}, "broker2, no such broker"),
        ({"bookies": 0}, "at least one bookie"),
        ({"bookies": -1, "with_broker": False}, "at least one bookie"),
        ({"block_bytes": 1024}, "smallest part"),
        ({"ports": {"bookie4": 1}}, "no port is called bookie4"),
    ],
)
def test_impossible_options_are_refused(wrong, said):
    with pytest.raises(SettingsError, match=said):
        StackOptions(**wrong)


def test_ports_are_distinct_and_free_with_their_grpc_twins():
    ports = choose_ports(StackOptions())
    assert set(ports) == set(StackOptions().port_names())
    opened = [*ports.values(), *(ports[name] + GRPC_OFFSET for name in S3_PORT_NAMES)]
    assert len(set(opened)) == len(opened)
    assert max(opened) < 32768  # where the kernel's own choice of local ports begins


def test_a_fixed_port_is_kept_and_a_taken_one_refused():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        taken = holder.getsockname()[1]
        with pytest.raises(
            PrerequisiteError, match=f"port {taken}, wanted for broker.web, is taken"
        ):
            choose_ports(StackOptions(ports={"broker.web": taken}))
    assert choose_ports(StackOptions(ports={"broker.web": taken}))["broker.web"] == taken


def test_ports_that_were_chosen_are_not_chosen_again_before_their_servers_start():
    found = []
    for _ in range(2):
        random.seed(7)
        found.append({*choose_ports(StackOptions()).values()})
    assert found[0].isdisjoint(found[1])
