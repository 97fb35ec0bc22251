"""Sources whose code travels: what Spark's processes say that lack it, and that they read with it.

As Spark would do it: unpickled in a process that has none of our code but what it is given.
"""

import pickle
import subprocess
import sys
import sysconfig

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition

from tiering_assets.lineage.in_spark.ledger_source import LedgersReader
from tiering_assets.resources.settings import Settings
from tiering_assets.spark.build import reader_hash, shipped_zip
from tiering_assets.spark.carried import SOURCES, CarriedSource, of_this_build, register

GIVEN = {"topic": "public/default/orders", "columns": "entry_id,payload", "filters": "true"}
# -S: no .pth file is read, so an editable installation is not there.
PROCESS = """
import sys
sys.path[:0] = {paths!r}
import pickle
kind = pickle.loads(open({pickled!r}, "rb").read())
try:
    source = kind({given!r})
    reader = source.reader(source.schema())
    from pyspark import cloudpickle
    again = pickle.loads(cloudpickle.dumps(reader))
    from pyspark.sql.datasource import InputPartition
    print(type(again).__name__, source.schema().fieldNames(), [*again.read(InputPartition(None))])
except ImportError as error:
    print(error)
"""


class Session:
    """Takes what is registered."""

    def __init__(self):
        self.conf = self
        self.dataSource = self
        self.said: dict[str, str] = {}
        self.sources: dict[str, type[CarriedSource]] = {}

    def set(self, name, value):
        self.said[name] = value

    def register(self, source):
        self.sources[source.name()] = source


@pytest.fixture
def session():
    found = Session()
    register(found, Settings())
    return found


def elsewhere(tmp_path, source, *paths):
    pickled = tmp_path / "source"
    pickled.write_bytes(cloudpickle.dumps(source))
    everywhere = [*map(str, paths), sysconfig.get_path("purelib")]
    program = PROCESS.format(paths=everywhere, pickled=str(pickled), given=GIVEN)
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_sources_and_their_filters_are_made_known(session):
    assert session.sources.keys() == SOURCES.keys()
    assert session.said == {"spark.sql.python.filterPushdown.enabled": "true"}


def test_a_process_with_the_shipped_code_reads(session, tmp_path):
    said = elsewhere(tmp_path, session.sources["pulsar_ledgers"], shipped_zip())
    assert said.split() == ["CarriedPruning", "['entry_id',", "'payload']", "[]"]


def test_a_process_without_it_says_so(session, tmp_path):
    said = elsewhere(tmp_path, session.sources["pulsar_ledgers"])
    assert f"has no code of tierkeeper, build {reader_hash()} is expected" in said
    assert "spark.code = ship" in said


def test_a_process_with_another_build_says_both(session, tmp_path):
    source = session.sources["pulsar_ledgers"]
    source.expected = {**source.expected, "build": "0123456789abcdef"}
    said = elsewhere(tmp_path, source, shipped_zip())
    assert f"has build {reader_hash()} of tierkeeper, the driver 0123456789abcdef" in said


def test_what_a_reader_learnt_of_filters_goes_with_it(session):
    source = session.sources["pulsar_ledgers"](GIVEN)
    reader = source.reader(source.schema())
    filters: list[object] = []
    assert reader.pushFilters(filters) is filters
    again = pickle.loads(cloudpickle.dumps(reader))
    assert isinstance(again.reading(), LedgersReader)
    assert [*again.read(InputPartition(None))] == []


def test_readers_without_filters_have_none(session):
    source = session.sources["pulsar_ledgers"]({**GIVEN, "filters": "false"})
    assert type(source.reader(source.schema())).__name__ == "CarriedReader"
    with pytest.raises(ValueError, match="no option: topics"):
        session.sources["pulsar_ledgers"]({"topics": "public/default/orders"})


def test_a_stream_is_carried_as_well(session):
    source = session.sources["pulsar_ledgers"](GIVEN)
    stream = pickle.loads(cloudpickle.dumps(source.streamReader(source.schema())))
    assert stream.initialOffset() == {"page": 0, "owed": ""}
    assert stream.getDefaultReadLimit().max_files == 1000


def test_what_workers_must_have_is_the_drivers():
    told = of_this_build(Settings())
    assert told["build"] == reader_hash()
    assert told["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
