"""What deploy/ ships: every command, option, file, port and variable that it names is one there is.

Commands are held against the help of the installed programs. What needs a PostgreSQL server is
`make postgres-check`.
"""

import configparser
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster._core.instance.config import PoolGranularity
from sqlalchemy.engine import make_url

from tiering_assets.resources.settings_places import CONFIG_VARIABLE
from tiering_assets.resources.settings_sources import load_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
WORKSPACE = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())
INSTALLED = "/etc/tierkeeper/"  # where docs/deployment.md puts the files of deploy/
SERVICES = {"code", "daemon", "webserver", "metrics"}


def read_unit(path):
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return {name: dict(parser[name]) for name in parser.sections()}


FILES = {
    "code": ["tierkeeper.env", "dagster.env"],
    "daemon": ["dagster.env"],
    "webserver": ["dagster.env"],
    "metrics": ["tierkeeper.env"],
}


def read_environment(name):
    lines = (DEPLOY / f"{name}.env.example").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    assert all(sign for _name, sign, _value in pairs)
    return {name: value for name, _sign, value in pairs}


OURS, DAGSTERS = read_environment("tierkeeper"), read_environment("dagster")
ENVIRONMENT = OURS | DAGSTERS
COMMANDS = {
    **{path.name: shlex.split(read_unit(path)["Service"]["ExecStart"]) for path in UNITS},
    **{name: COMPOSE["services"][name]["command"] for name in sorted(SERVICES)},
    "health of code": COMPOSE["services"]["code"]["healthcheck"]["test"][1:],
}


@cache
def help_of(words):
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:], "--help"],
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "300"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def unknown_options(command):
    """Options of a command line that its program's help does not list."""
    name = Path(command[0]).name
    first = next((i for i, word in enumerate(command) if word.startswith("-")), len(command))
    text = help_of((name, *command[1:first]))
    listed = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text))
    return [word for word in command if word.startswith("-") and word not in listed]


def option(command, name):
    return command[command.index(name) + 1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_exists(name):
    assert unknown_options(COMMANDS[name]) == []


def test_an_option_that_does_not_exist_would_be_found():
    assert unknown_options(["tierkeeper", "metrics", "serve", "--every", "1", "--eevry"]) == [
        "--eevry"
    ]


def test_units_and_compose_run_the_same_four_processes():
    assert {path.name for path in UNITS} == {f"tierkeeper-{name}.service" for name in SERVICES}
    assert set(COMPOSE["services"]) == SERVICES | {"postgres"}
    for name in SERVICES:
        unit, composed = COMMANDS[f"tierkeeper-{name}.service"], COMMANDS[name]
        assert Path(unit[0]).name == composed[0]
        assert [w for w in unit if w.startswith("--")][: len(composed)] == [
            word for word in composed if word.startswith("--")
        ] + (["--every"] if name == "metrics" else [])


def test_ports_and_module_are_those_that_the_others_expect():
    (entry,) = WORKSPACE["load_from"]
    server = entry["grpc_server"]
    assert server["host"] == {"env": "DAGSTER_CODE_HOST"}
    for name in ("tierkeeper-code.service", "code"):
        assert option(COMMANDS[name], "--port") == str(server["port"])
        assert option(COMMANDS[name], "--location-name") == server["location_name"]
        module = option(COMMANDS[name], "--module-name")
        assert (ROOT / Path(*module.split("."))).with_suffix(".py").is_file()
    assert option(COMMANDS["health of code"], "--port") == str(server["port"])
    assert COMPOSE["services"]["code"].get("ports") is None
    assert COMPOSE["services"]["code"]["environment"]["DAGSTER_CODE_HOST"] == "code"
    for name in ("webserver", "metrics"):
        port = option(COMMANDS[name], "--port")
        assert option(COMMANDS[f"tierkeeper-{name}.service"], "--port") == port
        assert COMPOSE["services"][name]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_no_unit_listens_beyond_this_machine():
    for path in UNITS:
        command = COMMANDS[path.name]
        if "--port" in command:
            assert option(command, "--host") == "127.0.0.1", path.name


def test_every_file_that_is_named_exists():
    named = {"tierkeeper.env.example", "dagster.env.example"}
    for command in COMMANDS.values():
        named |= {w.removeprefix(INSTALLED) for w in command if w.startswith(INSTALLED)}
    for path in UNITS:
        unit = read_unit(path)
        files = FILES[path.stem.removeprefix("tierkeeper-")]
        found = files[0] if len(files) == 1 else "*.env"
        assert unit["Service"]["EnvironmentFile"] == INSTALLED + found
        assert unit["Install"]["WantedBy"] == "multi-user.target"
        others = " ".join(unit["Unit"].get("After", "").split()).split()
        assert {name for name in others if name.startswith("tierkeeper")} <= {
            one.name for one in UNITS
        }
    for name in SERVICES:
        assert COMPOSE["services"][name]["env_file"] == FILES[name]
        build = COMPOSE["services"][name]["build"]
        named.add(f"{build['context']}/{build['dockerfile']}")
    for name in named:
        assert (DEPLOY / name).is_file(), name


def test_each_service_gets_its_own_secrets_and_no_others():
    assert all(name.startswith("TIERKEEPER_") for name in OURS)
    assert all(name.startswith(("DAGSTER_", "AWS_")) for name in DAGSTERS)
    for name, service in COMPOSE["services"].items():
        given = {*service.get("environment", {})}
        has_dagsters = "dagster.env" in FILES.get(name, [])
        assert ("DAGSTER_POSTGRES_URL" in given) is has_dagsters, name
        mounts_settings = any("tierkeeper.toml" in one for one in service.get("volumes", []))
        assert mounts_settings is ("tierkeeper.env" in FILES.get(name, [])), name
    assert {*COMPOSE["services"]["postgres"]["environment"]} == {
        "POSTGRES_USER",
        "POSTGRES_DB",
        "POSTGRES_PASSWORD",
    }


def test_the_image_copies_what_there_is_and_names_no_host():
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [source for line in lines if line.startswith("COPY") for source in line.split()[1:-1]]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
    images = [line.split()[1] for line in lines if line.startswith("FROM")]
    images += [service["image"] for service in COMPOSE["services"].values()]
    assert all("/" not in image for image in images)
    assert lines[-2] == "USER tierkeeper" or "USER tierkeeper" in lines


def test_every_variable_is_in_the_example_and_every_setting_in_it_is_one():
    text = "".join((DEPLOY / n).read_text() for n in ("dagster-postgres.yaml", "workspace.yaml"))
    wanted = set(re.findall(r"env: (\w+)", text))
    assert len(wanted) == 6
    assert wanted <= set(ENVIRONMENT)
    urls = [ENVIRONMENT["DAGSTER_POSTGRES_URL"]]
    urls += [COMPOSE["services"]["daemon"]["environment"]["DAGSTER_POSTGRES_URL"]]
    for url in urls:
        # SQLAlchemy loads the driver that the URL names; the plain name means one we do not have.
        assert make_url(url.replace(":?set POSTGRES_PASSWORD", "")).get_dialect().import_dbapi()
    settings = {name: value for name, value in ENVIRONMENT.items() if name != CONFIG_VARIABLE}
    assert load_settings(environ=settings).settings.store.access_key == "change-me"


def test_the_instance_with_postgres_differs_in_its_storage_alone():
    plain = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    postgres = yaml.safe_load((DEPLOY / "dagster-postgres.yaml").read_text())
    assert postgres.pop("storage") == {
        "postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}
    }
    assert postgres == plain


@pytest.mark.parametrize("path", ["dagster_home/dagster.yaml", "deploy/dagster.yaml"])
def test_dagster_accepts_the_instance_and_its_pools(path, tmp_path, monkeypatch):
    for name, value in ENVIRONMENT.items():
        if name.startswith(("DAGSTER_LOGS", "AWS_")):
            monkeypatch.setenv(name, value)
    (tmp_path / "dagster.yaml").write_text((ROOT / path).read_text())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        pools = instance.get_concurrency_config().pool_config
        assert pools.pool_granularity is PoolGranularity.RUN
        assert pools.default_pool_limit == 2
        assert instance.run_monitoring_enabled
        assert instance.run_retries_enabled
