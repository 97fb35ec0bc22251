"""Every run and tick that fails says why in one sentence and what to do next, without our frames.

Enumerated over all ops, checks and sensors, and over all errors of ours.
"""

import ast
import inspect
from typing import Any

import dagster as dg
import pytest

from tests.dagster.test_launchpad import FORMS, form
from tests.support.default_cluster import CLUSTER
from tests.support.rooms import WRITTEN, tree_of
from tests.support.sim_dagster import SimulatedTiering
from tests.unit.test_webhook import receiver
from tiering_assets.definitions import defs
from tiering_assets.defs.shared.failures import ADVICE, advice, as_failures, failure
from tiering_assets.resources import errors
from tiering_assets.resources.errors import SettingsError, TierkeeperError
from tiering_assets.resources.settings import AutoSettings, Settings

SAID = "store.bucket is empty, expected a name"
NEXT = "Next: `tierkeeper config show` says where each setting comes from"


class Unset(SimulatedTiering):
    """A resource whose settings cannot be read."""

    def load(self):
        raise SettingsError(SAID)


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def launch(instance, name, resource):
    filled = {"topic": "t/ns/orders"} if name == "audit" else {}
    ops = {op: {"config": {**config, **filled}} for op, config in form(name).items()}
    return defs.resolve_job_def(name).execute_in_process(
        instance=instance,
        resources={"tiering_stack": resource},
        raise_on_error=False,
        run_config={"ops": ops},
    )


def failed_step(result):
    [event] = [one for one in result.all_events if one.is_step_failure]
    return event.step_failure_data


@pytest.mark.parametrize("name", FORMS)
def test_every_job_fails_by_a_sentence_and_a_next_step(instance, name):
    data = failed_step(launch(instance, name, Unset()))
    assert data.user_failure_data.description == f"{name}: {SAID}. {NEXT}"
    assert data.error.cause is None
    assert data.error.context is None
    assert "resources/settings" not in data.error.to_string()


@pytest.mark.parametrize("sensor", [one.name for one in defs.get_repository_def().sensor_defs])
def test_every_sensor_fails_by_a_sentence_and_a_next_step(instance, sensor):
    definition = defs.get_repository_def().get_sensor_def(sensor)
    resources = {"tiering_stack": Unset()}
    if sensor == "run_failure":
        result = launch(instance, "discover", Unset())
        context: Any = failure_context(instance, result, resources)
        evaluate: Any = definition
    else:
        context = dg.build_sensor_context(instance=instance, resources=resources, definitions=defs)
        evaluate = definition.evaluate_tick
    with pytest.raises(dg.Failure) as failed:
        evaluate(context)
    assert failed.value.description == f"{sensor}: {SAID}. {NEXT}"
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def failure_context(instance, result, resources):
    run = instance.get_run_by_id(result.run_id)
    return dg.build_run_status_sensor_context(
        sensor_name="run_failure",
        dagster_event=result.get_run_failure_event(),
        dagster_instance=instance,
        dagster_run=run,
        resources=resources,
    ).for_run_failure()


class Posting(SimulatedTiering):
    url: str

    def load(self):
        return Settings(auto=AutoSettings(enabled=True, webhook_url=self.url))


def test_the_webhook_gets_the_sentence_and_not_a_class_of_dagsters(instance):
    result = launch(instance, "discover", Unset())
    sensor = defs.get_repository_def().get_sensor_def("run_failure")
    with receiver(200) as (url, got):
        sensor(failure_context(instance, result, {"tiering_stack": Posting(url=url)}))
    [document] = got
    assert document["error"] == f"discover: {SAID}. {NEXT}"
    assert (document["job"], document["cluster"]) == ("discover", CLUSTER.name)


def all_errors():
    found = [errors.TierkeeperError]
    for one in found:
        found += one.__subclasses__()
    return sorted({one for one in found if one.__module__ == errors.__name__}, key=str)


def test_every_error_of_ours_has_advice_and_no_advice_is_of_none():
    for one in all_errors():
        assert len(advice(one.retold("what was wrong"))) > 20, one
    assert {*ADVICE} <= {*all_errors()}
    general = [one for one in all_errors() if advice(one.retold("")) == ADVICE[TierkeeperError]]
    assert general == [TierkeeperError]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_an_error_ends_an_op_as_a_failure_that_is_retried_only_where_it_may_be(kind):
    with pytest.raises(dg.Failure) as failed, as_failures("offload"):
        raise kind.retold("ledger 7: what was wrong")
    assert str(failed.value.description).startswith("offload: ledger 7: what was wrong. Next: ")
    assert failed.value.allow_retries is kind.retryable
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_fault_of_the_program_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), as_failures("offload"):
        raise ZeroDivisionError


def test_a_sentence_ends_once():
    assert failure("it broke.", next_step="mend it").description == "it broke. Next: mend it"


DECORATORS = {
    "dg.asset",
    "dg.multi_asset",
    "dg.multi_asset_check",
    "dg.op",
    "dg.sensor",
    "dg.run_failure_sensor",
}
OURS = [name for name in WRITTEN if name.startswith("tiering_assets.defs")]


def decorated():
    for name in OURS:
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Call) and ast.unparse(one.func) in DECORATORS
                for one in node.decorator_list
            ):
                yield node


def test_every_function_that_dagster_calls_turns_errors_into_failures():
    found = {node.name: node for node in decorated()}
    assert {*found} == {
        "discovered",
        "offload_ledgers",
        "verify_ledgers",
        "release_ledgers",
        "scrubbed_ledgers",
        "swept_leavings",
        "compared_blocks",
        "topic_audit",
        "pause_topics",
        "sensor",
        "run_failure",
    }
    for name, node in found.items():
        [*_words, body] = node.body
        assert isinstance(body, ast.With), name
        assert ast.unparse(body.items[0].context_expr).startswith("as_failures("), name


def test_failures_are_made_in_one_place_and_hide_what_they_were_made_of():
    for name in OURS:
        tree = tree_of(name)
        made = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "dg.Failure"
        ]
        assert len(made) == (name == "tiering_assets.defs.shared.failures"), name
        for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
            for node in ast.walk(handler):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    maker = ast.unparse(node.exc.func)
                    if maker in {"failure", "batch_failure", "_refusal"}:
                        assert isinstance(node.cause, ast.Constant), (name, node.lineno)
                        assert node.cause.value is None


def test_every_failure_is_given_a_next_step():
    assert inspect.signature(failure).parameters["next_step"].default is inspect.Parameter.empty
