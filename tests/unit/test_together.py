"""Which files of `make test` go to the same process."""

from pathlib import Path

from tests.support.together import TOGETHER

TESTS = Path(__file__).parents[1]
# The fixtures of tests/conftest.py that start a Spark for the whole session.
NEEDED = {"remote_spark": "a Spark cluster", "spark_runner": "a Spark in this process"}


def test_files_that_ask_for_the_same_spark_are_together():
    asked = {}
    for room in ("stack", "fault"):
        for path in sorted((TESTS / room).glob("test_*.py")):
            text = path.read_text()
            for fixture, what in NEEDED.items():
                if any(f"{before}{fixture}{after}" in text for before in "( " for after in ",)"):
                    asked[path.name] = what
    assert asked == TOGETHER
