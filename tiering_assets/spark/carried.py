"""Sources of messages whose code travels with a session: named, checked, and loaded at workers.

    with open_session(settings) as session:  # spark/session.py; `spark.code = ship` sends the code
        register(session, settings)
        session.read.format("pulsar_ledgers").option("topic", "public/default/orders").load()

Owns: what Spark pickles of a source is of this module, which travels by value, and bytes. So a
process that lacks our code, or has another build of it, says so in a sentence before anything of it
is loaded; none reads with other code than the driver planned with. This module imports nothing of
ours at its top but what travels by value as well, and workers use the standard library and pyspark.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tiering_assets.spark.bootstrap import Batches, add_packages, loaded

if TYPE_CHECKING:
    from tiering_assets.resources.settings import Settings

SOURCES = {
    "pulsar_ledgers": "tiering_assets.lineage.in_spark.ledger_source:PulsarLedgers",
    "tierkeeper_table": "tiering_assets.lineage.in_spark.table_source:CatalogueTable",
}
"""Sources by the names that Spark knows, and where each is."""
_NO_STREAM = (
    "What plans a stream gets no code of a Connect session from Spark: for streams install tierkeeper "
    "where the Connect server runs"
)
FILTERS = "spark.sql.python.filterPushdown.enabled"


def register(session: Any, settings: Settings) -> None:
    """Let a session that `open_session` opened read both sources, and say which filters leave out
    rows.
    """
    expected = of_this_build(settings)
    session.conf.set(FILTERS, "true")
    for name, entry in SOURCES.items():
        has = {"called": name, "entry": entry, "expected": expected, "__module__": __name__}
        session.dataSource.register(type(CarriedSource.__name__, (CarriedSource,), has))


def carried(settings: Settings) -> Callable[[str, bytes], Callable[[Batches], Batches]]:
    """How `messages_frame` has workers run its code: `carry=carried(settings)`."""
    expected = of_this_build(settings)
    return lambda entry, told: partial(_run, entry=entry, told=told, expected=expected)


def of_this_build(settings: Settings) -> Mapping[str, str]:
    """What a worker must have, by `bootstrap.loaded`; and this module travels by value from now
    on.
    """
    from pyspark import cloudpickle

    from tiering_assets.spark import bootstrap
    from tiering_assets.spark.build import reader_hash
    from tiering_assets.spark.session import packages_name

    bootstrap.by_value()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    return {
        "of": reader_hash.__name__,
        "build": reader_hash(),
        "python": bootstrap.python_minor(),
        "packages": packages_name(settings),
    }


def there(entry: str, expected: Mapping[str, str]) -> Any:
    """What is named so, of the driver's build. ImportError that says what this process has."""
    if expected["packages"]:
        add_packages(expected["packages"])
    found = loaded(entry, expected)
    if isinstance(found, str):
        raise ImportError(found)  # noqa: TRY004 - a sentence that says what is missing
    return found


def _run(batches: Batches, entry: str, told: bytes, expected: Mapping[str, str]) -> Batches:
    yield from there(entry, expected)(batches, told)


class CarriedSource(DataSource):
    """`called` and `entry` as in SOURCES. What it has learnt is kept as bytes."""

    called: ClassVar[str] = ""
    entry: ClassVar[str] = ""
    expected: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._kept = pickle.dumps(there(self.entry, self.expected)(options))

    @classmethod
    def name(cls) -> str:
        return cls.called

    def _source(self) -> Any:
        there(self.entry, self.expected)
        return pickle.loads(self._kept)  # noqa: S301 - written here

    def schema(self) -> Any:
        source = self._source()
        found = source.schema()
        self._kept = pickle.dumps(source)
        return found

    def reader(self, schema: Any) -> DataSourceReader:
        made = self._source().reader(schema)
        prunes = type(made).pushFilters is not DataSourceReader.pushFilters
        kind = CarriedPruning if prunes else CarriedReader
        return kind(made, self.entry, self.expected)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        try:
            source = self._source()
        except ImportError as error:
            raise ImportError(f"{error}. {_NO_STREAM}") from None
        return CarriedStream(source.streamReader(schema), self.entry, self.expected)


class _Carried:
    """A reader as bytes. `entry` is where it is from."""

    def __init__(self, made: Any, entry: str, expected: Mapping[str, str]) -> None:
        self._kept, self._entry, self._expected = b"", entry, expected
        self._made: Any = made  # in a process that has it only as bytes, None

    def __getstate__(self) -> dict[str, Any]:
        kept = pickle.dumps(self._made) if self._made is not None else self._kept
        return {**self.__dict__, "_kept": kept, "_made": None}

    def reading(self) -> Any:
        """It, where this process has the driver's code."""
        if self._made is None:
            there(self._entry, self._expected)
            self._made = pickle.loads(self._kept)  # noqa: S301 - written here
        return self._made

    def read(self, partition: InputPartition) -> Iterator[Any]:
        reading = self.reading()
        if partition.value is None:  # where a plan has none Spark makes one of its own
            return reading.read(partition)  # type: ignore[no-any-return]
        return reading.read(pickle.loads(partition.value))  # type: ignore[no-any-return]  # noqa: S301


def _parts(made: Any) -> list[InputPartition]:
    return [InputPartition(pickle.dumps(one)) for one in made]


class CarriedReader(_Carried, DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return _parts(self.reading().partitions())


class CarriedPruning(CarriedReader):
    """Spark refuses one whose session does not say which filters there are."""

    def pushFilters(self, filters: list[Any]) -> Any:  # noqa: N802 - Spark's name
        return self.reading().pushFilters(filters)


class CarriedStream(_Carried, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark calls the names that it has."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.reading().initialOffset()  # type: ignore[no-any-return]

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.reading().prepareForTriggerAvailableNow()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return self.reading().getDefaultReadLimit()  # type: ignore[no-any-return]

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self.reading().latestOffset(start, limit)  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return _parts(self.reading().partitions(start, end))
