"""Which files of `make test` go to the same process, and which servers a file may stop."""

import re
from pathlib import Path

from tests.support.together import TOGETHER

TESTS = Path(__file__).parents[1]
# The fixtures of tests/conftest.py that start something for the whole session which few files need.
NEEDED = {
    "remote_spark": "a Spark cluster",
    "spark_runner": "a Spark in this process",
    "stack_to_stop": "servers to stop",
}
# Files with servers of their own, and what no shared stack can be for them.
OF_THEIR_OWN = {
    "test_automation.py": "the daemon tiers whatever it finds, other tests' topics, too",
    "test_bookies_with_names.py": "bookies are registered by name",
    "test_brokers_cut_off.py": "two brokers, one behind a proxy to ZooKeeper",
    "test_brokers_refuse.py": "a broker as it comes, without offload driver",
    "test_devstack.py": "how a stack starts, fails to start and ends",
    "test_documented_commands.py": "commands say --all, so nothing else may be there",
    "test_tour.py": "a second ZooKeeper and bucket, which are another cluster's",
    "test_two_brokers.py": "two brokers that skip what they cannot read",
}
STOPS = re.compile(r"\.(stop_server|restart_broker)\(")


def files():
    for room in ("stack", "fault"):
        for path in sorted((TESTS / room).glob("test_*.py")):
            yield path.name, path.read_text()


def test_files_that_ask_for_the_same_are_together():
    asked = {}
    for name, text in files():
        for fixture, what in NEEDED.items():
            if any(f"{before}{fixture}{after}" in text for before in "( " for after in ",)"):
                asked[name] = what
    assert asked == TOGETHER


def test_who_stops_servers_stops_those_of_the_second_stack_or_its_own():
    stopping = {name for name, text in files() if STOPS.search(text)}
    assert len(stopping) > 5
    assert {n for n in stopping if TOGETHER.get(n) != "servers to stop"} <= set(OF_THEIR_OWN)


def test_each_file_with_servers_of_its_own_says_why():
    assert {name for name, text in files() if "DevStack.start(" in text} == set(OF_THEIR_OWN)


def test_what_is_left_to_long_proofs_names_what_stands_for_it():
    """A test that is in this run, by its file and name."""
    named = re.compile(r"mark\.prove\(\s*instead=(.+?)\s*\)", re.DOTALL)
    found = 0
    for _name, text in files():
        assert text.count("mark.prove") == len(named.findall(text)), _name
        for said in named.findall(text):
            path, _, test = "".join(re.findall(r'"([^"]*)"', said)).partition("::")
            found += 1
            source = (TESTS.parent / path).read_text()
            before, _, _after = source.partition(f"def {test}(")
            assert f"def {test}(" in source, said
            assert "mark.prove" not in before.rpartition("\n\n\n")[2], f"{test} is left out, too"
            assert "pytestmark = pytest.mark.prove" not in source, said
    assert found > 5
