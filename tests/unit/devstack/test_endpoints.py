import stat
from pathlib import Path

import pytest

from tiering_assets.resources.devstack.endpoints import environment_of, environment_script
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.ports import choose_ports
from tiering_assets.resources.devstack.processes import ProcessRef
from tiering_assets.resources.devstack.servers import Credentials, Plan
from tiering_assets.resources.devstack.state import STATE_FILE, StackState, read_state, write_state
from tiering_assets.resources.errors import FormatError, PrerequisiteError
from tiering_assets.resources.settings import Settings, StoreSettings


def plan_in(directory: Path) -> Plan:
    options = StackOptions(
        brokers=2,
        pulsar_version="3.3.6",
        broker_conf={"a": "1", "b": None},
        one_broker_conf={"broker2": {"c": None}},
    )
    return Plan(
        directory=directory,
        distribution=directory / "pulsar",
        options=options,
        ports=choose_ports(options),
        credentials=Credentials(access_key="A", secret_key="hidden", signing_key="hidden"),
    )


def test_only_what_differs_from_the_defaults_is_exported():
    settings = Settings(store=StoreSettings(bucket="b", secret_key="it's"))
    variables = environment_of(settings)
    assert variables == {"TIERKEEPER_STORE_BUCKET": "b", "TIERKEEPER_STORE_SECRET_KEY": "it's"}
    assert "export TIERKEEPER_STORE_BUCKET=b\n" in environment_script(variables)
    assert environment_of(Settings()) == {}


def test_state_comes_back_equal_and_private(tmp_path):
    state = StackState(stack_id="s", plan=plan_in(tmp_path), processes={"s3": ProcessRef(1, 2.5)})
    write_state(state)
    assert read_state(tmp_path) == state
    assert stat.S_IMODE((tmp_path / STATE_FILE).stat().st_mode) == 0o600
    assert "hidden" not in repr(state)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "other"}', '"x"', "null"])
def test_another_file_is_a_format_error(tmp_path, text):
    (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(FormatError):
        read_state(tmp_path)


def test_no_state_names_the_command_that_makes_one(tmp_path):
    with pytest.raises(PrerequisiteError, match="tierkeeper stack up"):
        read_state(tmp_path)
