"""`tierkeeper auto on|off|status`: the wanted state of automation, and whether it is so."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.automation.code_location import loaded_settings
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import human_time, print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import SettingsError

if TYPE_CHECKING:
    from datetime import datetime

    from tiering_assets.defs.automation.automation import AutoStatus

app = typer.Typer(
    name="auto",
    help="Sensors that ask for offload, release and scrub runs.",
    no_args_is_help=True,
)


CONSENT = consent_options(
    does="Turn it on.", plan_help="Print which sensors would then ask for runs, and end with 0."
)


@command(
    app,
    "on",
    examples=("tierkeeper auto on --plan", "tierkeeper auto on --execute"),
)
def on(session: Session, *, consent: Annotated[Consent, CONSENT]) -> None:
    """Turn automation on, in the settings file.

    Writes auto.enabled = true and switches every sensor of Dagster's UI on. What they may then ask
    for is printed first: copies, publications, releases. They ask for runs from their next tick on.
    They need the daemon: the command says what is missing and ends with 1 until everything runs;
    `tierkeeper auto status` says it again.
    """
    from tiering_assets.defs.automation.all import sensors_of
    from tiering_assets.defs.shared.instance import find_home

    loaded = loaded_settings()
    on = replace(loaded.auto, enabled=True)  # sensors say what they do, as they will be
    sensors = sensors_of(replace(loaded, auto=on))
    find_home()
    may_act = consent.given(
        session,
        show=lambda: _print_permits(session, [(s.name, s.description) for s in sensors], consent),
        question="Turn automation on?",
    )
    if not may_act:
        return
    _write(session, value=True)
    if switched := _switch(on=True):
        session.progress(f"switched on: {', '.join(switched)}")
    _print_status(session, _read(wanted=True))


@command(app, "off", examples=("tierkeeper auto off",))
def off(session: Session) -> None:
    """Turn automation off, in the settings file, at once.

    Writes auto.enabled = false. It holds from the next tick of each sensor on, wherever the daemon
    runs with this file. Where DAGSTER_HOME names an instance, the sensors of its UI are switched
    off, too, and say why. Runs that are queued or started go on; cancel them in the UI. What is
    tiered stays readable.
    """
    path = _write(session, value=False)
    switched, stay = [], ""
    try:
        switched = _switch(on=False)
    except SettingsError as error:  # without an instance here each tick obeys all the same
        stay = f"switches of Dagster's UI stay as they are: {error}"
    if switched:
        session.progress(f"switched off: {', '.join(switched)}")
    if session.as_json:
        print_document("auto-off", {"wanted": False, "file": path, "switched": switched})
    else:
        print_line("automation is off from the next tick on")
    if stay:
        session.progress(stay)


@command(
    app,
    "status",
    examples=("tierkeeper auto status", "tierkeeper auto status --json"),
    reads_only=ALWAYS,
)
def status(session: Session) -> None:
    """Print the wanted state, the daemon and every sensor.

    Ends with 1 when automation is wanted and the daemon or a sensor does not run as it should.
    """
    _print_status(session, _read(wanted=session.settings.auto.enabled))


def _print_permits(
    session: Session, sensors: Sequence[tuple[str, str | None]], consent: Consent
) -> None:
    """The plan: what may ask for runs. Holds and pauses bind all of it."""
    if session.as_json:
        names = [name for name, _description in sensors]
        print_document("auto-on", {"executed": False, "sensors": names})
        return
    every = session.settings.auto.interval_s
    print_table(
        (Column("SENSOR", ValueKind.ID), Column("WHAT IT DOES")),
        [(name, (description or "").partition("\n")[0]) for name, description in sensors],
    )
    print_line(
        f"permits {len(sensors)} sensors to ask for runs, every {every:g} s; holds and pauses "
        f"bind them{consent.nothing_done}"
    )


def _switch(*, on: bool) -> list[str]:
    """Sensors whose switch was another. SettingsError without an instance that can be opened."""
    from tiering_assets.defs.automation.all import sensors_of
    from tiering_assets.defs.automation.automation import follow
    from tiering_assets.defs.shared.instance import find_home, open_instance
    from tiering_assets.defs.shared.names import ClusterNames

    loaded = loaded_settings()
    with open_instance(find_home()) as instance:
        return follow(instance, ClusterNames.of(loaded.dagster), sensors_of(loaded), on=on)


def _write(session: Session, *, value: bool) -> str:
    from tiering_assets.resources.settings_file import write_switch

    if "auto.enabled" in session.flags:
        raise SettingsError("auto.enabled is what this command writes: leave --set out")
    path = write_switch("auto.enabled", value, environ=os.environ, file=session.config)
    session.progress(f"{path}: auto.enabled = {str(value).lower()}")
    return str(path)


def _read(*, wanted: bool) -> AutoStatus:
    from tiering_assets.defs.automation.all import sensors_of
    from tiering_assets.defs.automation.automation import read_status
    from tiering_assets.defs.shared.instance import find_home, open_instance

    sensors = sensors_of(loaded_settings())
    with open_instance(find_home()) as instance:
        return read_status(instance, sensors, wanted=wanted)


def _print_status(session: Session, found: AutoStatus) -> None:
    if session.as_json:
        print_document("auto-status", {**_document(found), "differs": found.differs})
    else:
        print_line(f"wanted: {'on' if found.wanted else 'off'}")
        print_line(f"daemon: {_time(found.daemon_beat)}")
        for problem in found.problems:
            print_line(f"  {problem}")
        print_table(
            (
                Column("SENSOR", ValueKind.ID),
                Column("LAST TICK", ValueKind.TIME),
                Column("RESULT", ValueKind.STATE),
                Column("WHAT IS WRONG", ValueKind.FINDINGS),
            ),
            [
                (one.name, one.last_tick or "never", one.result, one.problem)
                for one in found.sensors
            ],
        )
        for one in found.sensors:
            if one.problem and one.said:
                print_line(f"{one.name}: {one.said}")
    if found.differs:
        raise typer.Exit(FINDINGS)


def _document(found: AutoStatus) -> dict[str, object]:
    return {
        "wanted": found.wanted,
        "daemon_beat": found.daemon_beat,
        "problems": found.problems,
        "sensors": found.sensors,
    }


def _time(moment: datetime | None) -> str:
    return "never" if moment is None else human_time(moment)
