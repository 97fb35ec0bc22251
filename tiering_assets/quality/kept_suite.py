"""A suite of Great Expectations whose preparation is kept, for a first look at a frame.

Owns the one seam to parts of the library that it does not promise to keep. They say which metrics
an expectation asks for, resolve a graph of metrics, and judge by them. They are used here as in
`Validator.graph_validate` of 1.24. That prepares the suite anew for each validation, which is nine
tenths of the cost; here it is prepared once (docs/decisions/0022-a-suite-is-prepared-once.md).

The metrics and the verdicts are the library's. The look has two answers: every expectation holds,
or it cannot say so. It never says what is wrong; then the library validates by its public door.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

_BATCH: Final = "frame"  # id of the only batch that an engine of ours holds


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One expectation, and the metrics that it asks for, by their names in it."""

    expectation: Any
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeptSuite:
    """Used by one thread at a time; holds nothing of any frame."""

    expectations: tuple[_Prepared, ...]
    edges: tuple[Any, ...]

    def holds(self, frame: pd.DataFrame) -> bool:
        """Whether the library says of each expectation that it holds; False where it says less."""
        try:
            return self._holds(frame)
        except Exception:  # noqa: BLE001 - whatever it is, the library itself judges next
            return False

    def _holds(self, frame: pd.DataFrame) -> bool:
        from great_expectations.validator.validation_graph import ValidationGraph

        engine = _engine(frame)
        graph = ValidationGraph(execution_engine=engine, edges=list(self.edges))
        found, aborted = graph.resolve(runtime_configuration=_how(), show_progress_bars=False)
        return not aborted and all(_judge(one, found, engine) for one in self.expectations)


def keep(expectations: Iterable[Any], frame: pd.DataFrame) -> KeptSuite | None:
    """Prepare expectations as the library built them; None where its parts are not as they were.

    `frame` is any frame: the library wants one to say which metrics it has.
    """
    try:
        return _keep(expectations, frame)
    except Exception:  # noqa: BLE001 - the library itself judges then, and says what is wrong
        return None


def _keep(expectations: Iterable[Any], frame: pd.DataFrame) -> KeptSuite:
    from great_expectations.validator.validation_graph import ValidationGraph

    engine = _engine(frame)
    graph = ValidationGraph(execution_engine=engine)
    prepared = []
    for one in expectations:
        configuration = one.configuration
        configuration.kwargs["batch_id"] = _BATCH
        expectation = configuration.to_domain_obj()
        asked = expectation.get_validation_dependencies(
            execution_engine=engine, runtime_configuration=_how()
        )
        metrics = dict(asked.metric_configurations)
        for metric in metrics.values():
            graph.build_metric_dependency_graph(metric, runtime_configuration=_how())
        prepared.append(_Prepared(expectation, metrics))
    return KeptSuite(tuple(prepared), tuple(graph.edges))


def _judge(one: _Prepared, found: Mapping[Any, Any], engine: Any) -> bool:
    # A metric that is not there is an error here: the library would take it for no wrong row.
    metrics = {name: found[metric.id] for name, metric in one.metrics.items()}
    said = one.expectation._validate(
        metrics=metrics, runtime_configuration=_how(), execution_engine=engine
    )
    return said["success"] is True


def _engine(frame: pd.DataFrame) -> Any:
    """An engine that knows this frame alone, so that no metric can be of another."""
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine

    return PandasExecutionEngine(batch_data_dict={_BATCH: frame})


def _how() -> dict[str, Any]:
    """Each time anew, because the library writes into it."""
    return {"result_format": {"result_format": "BOOLEAN_ONLY"}, "catch_exceptions": False}
